"""Some blocks of a program: which ones, and whether they compute alone what they compute among all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_eg.errors import TileError
from tile_eg.ir.program import Program, SyncAll, walk

WAY_OUT = "smaller sizes, or another schedule: `tile-eg alternatives` lists some for `--schedule`"


def sampled_blocks(number: int, program: Program, grid: Sequence[int]) -> tuple[int, ...]:
    """That many blocks, spread over the kernel's `grid` where the program has a block for each of its tiles; none where it has no
    more than these: all are to run."""
    from tile_eg.simulator.sample import sampled

    if number >= program.blocks:
        return ()
    return sampled(number, grid if prod(grid) == program.blocks else [program.blocks])


def check_sample(program: Program, blocks: Sequence[int]) -> None:
    """TileError where these blocks need the others. None of them: all are to run."""
    if blocks and (why := _together(program)):
        raise TileError(f"no blocks of {program.name} run alone: {why}", help=WAY_OUT)


def can_be_sampled(program: Program) -> bool:
    """Whether some blocks compute without the others what they compute among them."""
    return not _together(program)


def _together(program: Program) -> str:
    """Why blocks need each other; empty where they do not."""
    if any(isinstance(n, SyncAll) for n in walk((*program.cube, *program.vector))):
        return "all of them meet, and go on with what the others have computed"
    if program.added_to:
        return f"they add to {', '.join(sorted(program.added_to))}, as others may"
    return ""
