"""Which tiles of a kernel's grid are compared with what it means: of a large one some, as NumPy computes its meaning."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel, added_to
from tile_eg.ir.program import Program
from tile_eg.ir.reference_work import elements_of_tile
from tile_eg.simulator.sample import sampled, tiles_of

ELEMENTS = 1 << 26
"""What is computed of a kernel's meaning unless it is asked for more: some seconds for each set of inputs."""
FEWEST = 4
"""Tiles that are compared at the least: the corners of a grid of two dimensions."""


def compared_tiles(
    number: int | None, kernel: Kernel | Program | KeptKernel, program: Program, blocks: Sequence[int] = ()
) -> tuple[int, ...] | None:
    """The tiles of a kernel's grid that are compared; None: all, or it has no meaning but its program's.

    `number` of them, 0 for all (None: as many as take seconds); where some `blocks` of its program run, tiles of these. Where
    blocks add to one tensor no tile is right without the others.
    """
    if not isinstance(kernel, Kernel) or added_to(kernel):
        return None
    grid = [extent for _, extent in kernel.grid]
    total = prod(grid)
    able = tiles_of(blocks, program, total) if blocks else tuple(range(total))
    most = max(FEWEST, ELEMENTS // max(1, elements_of_tile(kernel))) if number is None else number or total
    if most >= len(able):
        return None if len(able) == total else able
    chosen = sampled(most, grid if len(able) == total else [len(able)])
    return tuple(able[i] for i in chosen)


def told(tiles: Collection[int] | None, kernel: Kernel, program: Program, blocks: Sequence[int] = ()) -> tuple[str, ...]:
    """The sentence that says so; none where all that ran was compared."""
    total = prod(extent for _, extent in kernel.grid)
    ran = len(tiles_of(blocks, program, total)) if blocks else total
    if tiles is None or len(tiles) >= ran:
        return ()
    which = "tiles that ran" if blocks else "tiles of the grid, its corners and others"
    return (f"compared in {len(tiles)} of the {ran} {which} (--compare 0: in all)",)
