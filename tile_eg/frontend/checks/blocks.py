"""Blocks run in no promised order, so no two of them may write the same elements."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tile_eg.errors import TileError
from tile_eg.frontend.ranges import all_values
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index_elements import elements_in

MAX_WINDOWS = 1 << 18


def refuse_meeting(kernel: kn.Kernel, target: kn.Region, ranges: Mapping[str, ix.Interval]) -> None:
    """TileError where a window that is stored by one block overlaps the same statement's window of another block.

    Two windows that begin in one cell of a raster of the window's own size overlap for certain; two rasters, half a window
    apart, are tried. What they miss is left to the simulator, which sees every byte. So are more than 2**18 windows, and those
    whose place is read from a tensor.
    """
    if any(map(elements_in, target.starts)):
        return
    grid = [name for name, extent in kernel.grid if extent > 1]
    names = sorted({*grid, *(v for s in target.starts for v in ix.variables(s))})
    if not grid or prod(ranges[n][1] - ranges[n][0] + 1 for n in names) > MAX_WINDOWS:
        return
    import numpy as np

    values = [all_values(e, ranges, names) for e in (*target.starts, *(ix.var(g) for g in grid))]
    columns = [v.ravel() for v in np.broadcast_arrays(*values)]
    starts, blocks = columns[: len(target.starts)], np.stack(columns[len(target.starts) :], axis=1)
    for part in (0, 2):
        cells = np.stack([(s + (e // part if part else 0)) // e for s, e in zip(starts, _sizes(target), strict=True)], axis=1)
        if (pair := _met(cells, blocks)) is not None:
            raise _error(target, grid, pair)


def _sizes(target: kn.Region) -> list[int]:
    return [e or 1 for e in target.extents]


def _met(cells, blocks):  # noqa: ANN001, ANN202
    """The grid indices of two different blocks in one cell, or None."""
    import numpy as np

    order = np.lexsort(cells.T[::-1])
    same = (np.diff(cells[order], axis=0) == 0).all(axis=1) & (np.diff(blocks[order], axis=0) != 0).any(axis=1)
    if not same.any():
        return None
    at = int(np.argmax(same))
    return blocks[order[at]], blocks[order[at + 1]]


def _error(target: kn.Region, grid: list[str], pair) -> TileError:  # noqa: ANN001
    one, other = (", ".join(f"{g}={int(v)}" for g, v in zip(grid, block, strict=True)) for block in sorted(map(tuple, pair)))
    window = "x".join(map(str, target.shape)) or "one element"
    return TileError(
        f"two blocks write the same elements of `{target.name}`: those with {one} and {other}, a window of {window} each",
        target.span,
        help="blocks run in no promised order: let each block's window begin where no other one reaches",
    )
