"""Whether some blocks of a program compute alone what they compute among all."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.errors import TileError
from tile_eg.ir.program import Program, SyncAll, walk

WAY_OUT = "smaller sizes, or another schedule: `tile-eg alternatives` lists some for `--schedule`"


def check_sample(program: Program, blocks: Sequence[int]) -> None:
    """TileError where these blocks need the others. None of them: all are to run."""
    if not blocks:
        return
    if any(isinstance(n, SyncAll) for n in walk((*program.cube, *program.vector))):
        meet = "all of them meet, and go on with what the others have computed"
        raise TileError(f"no blocks of {program.name} run alone: {meet}", help=WAY_OUT)
    if program.added_to:
        sums = ", ".join(sorted(program.added_to))
        raise TileError(f"no blocks of {program.name} run alone: they add to {sums}, as others may", help=WAY_OUT)
