"""The command line. `main` is its entry point; commands, and what they print with, are imported when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and ends the process with 0 (good), 1 (the user's error) or 2 (ours)."""
    from tile_eg.cli.again import said_again

    given = sys.argv[1:] if arguments is None else list(arguments)
    if not said_again(given):
        from tile_eg.cli.app import run

        sys.exit(run(given))
