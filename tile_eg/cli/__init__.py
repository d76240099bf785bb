"""The command line. `main` is its entry point; commands, and what they print with, are imported when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

THREADS = "OPENBLAS_NUM_THREADS"
"""Of NumPy's products. What a kernel means are products of tiles, in which threads wait for each other more than they work."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and ends the process with 0 (good), 1 (the user's error) or 2 (ours)."""
    os.environ.setdefault(THREADS, "1")  # before NumPy is imported
    from tile_eg.cli.again import said_again
    from tile_eg.cli.console import INTERRUPTED

    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if said_again(given):
            return
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    from tile_eg.cli.app import run

    sys.exit(run(given))
