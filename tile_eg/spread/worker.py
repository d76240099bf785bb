"""A process that does items for another one: `python -m tile_eg.spread.worker`.

Both speak in pickles over its standard input and output: first the paths of modules, then (position, function, item) until the
input ends; an `Outcome` comes back for each. It is started by `processes`, which is the only one it listens to.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import BinaryIO

from tile_eg.spread.outcome import Outcome, done


def main() -> None:
    """Does what comes in until nothing does."""
    come, go = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what an item prints is no answer
    sys.path[:] = pickle.load(come)
    name = f"process {os.getpid()}"
    while True:
        try:
            position, function, item = pickle.load(come)
        except (EOFError, KeyboardInterrupt):
            return
        answer(go, done(function, item, position, name))


def answer(go: BinaryIO, outcome: Outcome) -> None:
    """Sends an outcome; one that cannot be sent is a fault of its item."""
    try:
        data = pickle.dumps(outcome)
    except Exception as error:
        why = f"its value cannot be sent: {type(error).__name__}: {error}"
        data = pickle.dumps(Outcome(outcome.item, error=why, fault=True, worker=outcome.worker))
    go.write(data)
    go.flush()


if __name__ == "__main__":
    main()
