"""The command line. `main` is its entry point; commands, and what they print with, are imported when it runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from tile_eg.cli.codes import INTERRUPTED

THREADS = "OPENBLAS_NUM_THREADS"
"""Of NumPy's products. What a kernel means are products of tiles, in which threads wait for each other more than they work."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and ends the process with 0 (good), 1 (the user's error) or 2 (ours)."""
    os.environ.setdefault(THREADS, "1")  # before NumPy is imported
    _open_streams()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        from tile_eg.cli.again import said_again

        if said_again(given):
            return
        gc.disable()  # what is imported stays
        from tile_eg.cli.app import run

        gc.freeze()
        gc.enable()
        code = run(given)
        gc.freeze()  # Python would look through all of it once more before it ends
        sys.exit(code)
    except KeyboardInterrupt:  # while modules are loaded: `run` tells of its own
        sys.exit(INTERRUPTED)


def _open_streams() -> None:
    """What is printed to a stream that the caller closed (`>&-`) goes nowhere."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
