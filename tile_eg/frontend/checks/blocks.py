"""Blocks run in no promised order, so no two of them may write different values to the same elements."""

from __future__ import annotations

from collections.abc import Mapping, Set
from math import prod

from tile_eg.errors import TileError
from tile_eg.frontend.checks.alike import parts_of_block
from tile_eg.frontend.ranges import all_values
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in

MAX_WINDOWS = 1 << 18


def refuse_meeting(
    kernel: kn.Kernel, target: kn.Region, ranges: Mapping[str, ix.Interval], made_of: Set[Expr] | None = None
) -> bool:
    """Whether windows that one statement stores in several blocks overlap. TileError where the values may differ there.

    Two windows that begin in one cell of a raster of the window's own size overlap for certain; two rasters, half a window
    apart, are tried. What they miss is left to the simulator, which sees every byte. So are more than 2**18 windows, and those
    whose place or length is read from a tensor. `made_of` is all of the block's index that the value depends on; None:
    not known.
    """
    if any(target.counts) or any(map(elements_in, target.starts)):
        return False
    grid = [name for name, extent in kernel.grid if extent > 1]
    names = sorted({*grid, *(v for s in target.starts for v in ix.variables(s))})
    if not grid or prod(ranges[n][1] - ranges[n][0] + 1 for n in names) > MAX_WINDOWS:
        return False
    import numpy as np

    own = [ix.var(g) for g in grid]
    if made_of is not None:
        own = sorted(made_of | parts_of_block(kernel, target.starts), key=ix.text)
    values = [all_values(e, ranges, names) for e in (*target.starts, *(ix.var(g) for g in grid), *own)]
    columns = [v.ravel() for v in np.broadcast_arrays(*values)]
    count = len(target.starts)
    starts, blocks = columns[:count], np.stack(columns[count : count + len(grid)], axis=1)
    differing = np.stack(columns[count + len(grid) :], axis=1) if own else np.zeros((len(blocks), 0), np.int64)
    meet = False
    for part in (0, 2):
        cells = np.stack([(s + (e // part if part else 0)) // e for s, e in zip(starts, _sizes(target), strict=True)], axis=1)
        met, pair = _met(cells, blocks, differing)
        if pair is not None:
            raise _error(target, grid, pair)
        meet |= met
    return meet


def _sizes(target: kn.Region) -> list[int]:
    return [e or 1 for e in target.extents]


def _met(cells, blocks, own):  # noqa: ANN001, ANN202
    """Whether blocks share a cell, and the grid indices of two whose values may differ there, or None.

    Blocks that store equal values in a cell have to do so once each: else one overwrites what the other has left there.
    """
    import numpy as np

    order = np.lexsort((*blocks.T[::-1], *cells.T[::-1]))
    same = (np.diff(cells[order], axis=0) == 0).all(axis=1)
    other = (np.diff(blocks[order], axis=0) != 0).any(axis=1)
    met = same & other
    differ = met & (np.diff(own[order], axis=0) != 0).any(axis=1)
    if met.any() and not differ.any() and (same & ~other).any():
        differ = met
    if not differ.any():
        return bool(met.any()), None
    at = int(np.argmax(differ))
    return True, (blocks[order[at]], blocks[order[at + 1]])


def _error(target: kn.Region, grid: list[str], pair) -> TileError:  # noqa: ANN001
    one, other = (", ".join(f"{g}={int(v)}" for g, v in zip(grid, block, strict=True)) for block in sorted(map(tuple, pair)))
    window = "x".join(map(str, target.shape)) or "one element"
    return TileError(
        f"two blocks write the same elements of `{target.name}`: those with {one} and {other}, a window of {window} each",
        target.span,
        help="blocks run in no promised order: let each block's window begin where no other one reaches",
    )
