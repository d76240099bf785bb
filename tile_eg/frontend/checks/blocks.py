"""Blocks run in no promised order, so no two of them may write different values to the same elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from math import gcd, prod

from tile_eg.errors import TileError, attempted
from tile_eg.frontend.checks.alike import made_of, parts_of_block
from tile_eg.frontend.checks.moved import made_of_moved
from tile_eg.frontend.ranges import all_values
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.operands import regions
from tile_eg.ir.seen import indexed

MAX_WINDOWS = 1 << 18
Ranges = Mapping[str, ix.Interval]


def refuse_meeting(kernel: kn.Kernel, store: kn.Assign, ranges: Ranges) -> bool:
    """Whether windows that one statement stores in several blocks overlap. TileError where the values may differ there."""
    target, ranges = _as_window(kernel, store.target, ranges)
    found = attempted(lambda: windows_meet(kernel, target, ranges, made_of(kernel, store)))
    if isinstance(found, bool):
        return found
    moved = made_of_moved(kernel, store)
    if moved is None:
        raise found
    return windows_meet(kernel, target, ranges, moved, moves=True)


def is_partly(store: kn.Assign) -> bool:
    """Whether a condition may decide which elements of a tensor an element loop writes: the others stay as they are."""
    return any(r.name == store.target.name for r in regions(store.value))


def _as_window(kernel: kn.Kernel, target: kn.Region, ranges: Ranges) -> tuple[kn.Region, Ranges]:
    """Elements that an element loop writes one beside the other as the window that they are, and the variables that are left."""
    loops = (s for s in kn.statements(kernel.body) if isinstance(s, kn.Parallel))
    sizes = {v: n for s in loops for v, n in zip(s.vars, s.extents, strict=True) if v in ranges}
    starts, extents, joined = list(target.starts), list(target.extents), set[str]()
    for k, start in enumerate(starts):
        own = [v for v in sorted(ix.variables(start) & sizes.keys()) if extents[k] is None]
        alone = len(own) == 1 and sum(own[0] in ix.variables(other) for other in target.starts) == 1
        if alone and not ix.variables(start - ix.var(own[0])) & {own[0]}:
            starts[k], extents[k] = start - ix.var(own[0]), sizes[own[0]]
            joined.add(own[0])
    made = replace(target, starts=tuple(starts), extents=tuple(extents))
    return made, {v: r for v, r in ranges.items() if v not in joined}


def windows_meet(
    kernel: kn.Kernel, target: kn.Region, ranges: Ranges, made_of: Set[Expr] | None = None, moves: bool = False
) -> bool:
    """Whether the windows that one statement stores in several blocks overlap. TileError where their values may differ there.

    Windows are laid on a raster whose cells are as large as a window, and on a second one, half a window further on: two that
    begin in one cell overlap. Overlaps that neither raster shows are left to the simulator, which sees every byte; so are more
    than 2**18 windows, and those whose place or length is read from a tensor. `made_of` are the parts of the block's index that
    the value depends on (None: not known). `moves`: it depends on each element's place alone, not on where the window begins.
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
        own = sorted(made_of | (set() if moves else parts_of_block(kernel, target.starts)), key=ix.text)
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


def refuse_others(kernel: kn.Kernel, stores: Sequence[tuple[kn.Assign, Mapping[str, ix.Interval]]]) -> None:
    """TileError where a window that one statement stores in a block overlaps one that another stores in another block.

    What is read from a tensor, and more than 2**18 cells, is left to the simulator.
    """
    grid = [name for name, extent in kernel.grid if extent > 1]
    shapes = {t.name: indexed(t).shape for t in kernel.tensors}
    for n, (one, around) in enumerate(stores if grid else ()):
        for other, inside in stores[:n]:
            if one.target.name == other.target.name and not _same_number(one.value, other.value):
                _refuse_two((other.target, inside), (one.target, around), shapes[one.target.name], grid)


def _same_number(a: kn.TileExpr, b: kn.TileExpr) -> bool:
    return isinstance(a, kn.Number) and isinstance(b, kn.Number) and a.value == b.value


def _refuse_two(one: tuple[kn.Region, Ranges], other: tuple[kn.Region, Ranges], shape: Sequence[int], grid: list[str]) -> None:
    import numpy as np

    found = [_windows(r, around, grid) for r, around in (one, other)]
    if found[0] is None or found[1] is None:
        return
    sizes = [_sizes(r) for r, _ in (one, other)]
    begins = [[int(np.gcd.reduce(s)) for s in starts] for starts, _ in found]
    edges = [gcd(*of_dimension) for of_dimension in zip(*begins, *sizes, strict=True)]
    counts = [prod(n // e for n, e in zip(size, edges, strict=True)) * len(f[1]) for size, f in zip(sizes, found, strict=True)]
    if sum(counts) > MAX_WINDOWS:
        return
    parts = [_cells(f, size, edges, shape) for f, size in zip(found, sizes, strict=True)]
    _, cells = np.unique(np.concatenate([cells for cells, _ in parts]), axis=0, return_inverse=True)
    blocks, ids = np.unique(np.concatenate([own for _, own in parts]), axis=0, return_inverse=True)
    first = len(parts[0][0])
    pair = _of_two_blocks(*((cells.ravel()[part], ids.ravel()[part]) for part in (slice(first), slice(first, None))))
    if pair is not None:
        raise _two_statements(one[0], other[0], grid, [blocks[n] for n in pair])


def _of_two_blocks(one, other):  # noqa: ANN001, ANN202
    """Two blocks that differ, of which the first is in a cell of one statement and the second in the same cell of another."""
    import numpy as np

    count = 1 + max(int(cells.max(initial=0)) for cells, _ in (one, other))
    most = int(max(ids.max(initial=0) for _, ids in (one, other))) + 1
    low, high = (np.full((2, count), value) for value in (most, -1))
    for n, (cells, ids) in enumerate((one, other)):
        np.minimum.at(low[n], cells, ids)
        np.maximum.at(high[n], cells, ids)
    meet = (high >= 0).all(axis=0) & (low.min(axis=0) != high.max(axis=0))
    if not meet.any():
        return None
    at = int(np.argmax(meet))
    pairs = ((low[0, at], high[1, at]), (high[0, at], low[1, at]))
    return pairs[0] if pairs[0][0] != pairs[0][1] else pairs[1]


def _windows(r: kn.Region, around: Ranges, grid: list[str]):  # noqa: ANN202
    """Where a store's windows start in each dimension, and the blocks' indices; None where too many, or read from a tensor."""
    import numpy as np

    names = sorted({*grid, *(v for s in r.starts for v in ix.variables(s))})
    read = any(r.counts) or r.step != 1 or any(map(elements_in, r.starts))
    if read or prod(around[n][1] - around[n][0] + 1 for n in names) > MAX_WINDOWS:
        return None
    columns = np.broadcast_arrays(*(all_values(e, around, names) for e in (*r.starts, *map(ix.var, grid))))
    count = len(r.starts)
    return [c.ravel() for c in columns[:count]], np.stack([c.ravel() for c in columns[count:]], axis=1)


def _cells(found, size: list[int], edges: list[int], shape: Sequence[int]):  # noqa: ANN001, ANN202
    """The cells of a raster that windows cover inside of their tensor, each with its block."""
    import numpy as np

    starts, blocks = found
    each = np.stack([a.ravel() for a in np.indices([n // e for n, e in zip(size, edges, strict=True)])], axis=1)
    cells = np.stack([s // e for s, e in zip(starts, edges, strict=True)], axis=1)[:, None, :] + each[None]
    inside = (cells * edges < shape).all(axis=2).ravel()
    return cells.reshape(-1, len(edges))[inside], np.repeat(blocks, len(each), axis=0)[inside]


def _two_statements(one: kn.Region, other: kn.Region, grid: list[str], pair) -> TileError:  # noqa: ANN001
    first, second = (", ".join(f"{g}={int(v)}" for g, v in zip(grid, block, strict=True)) for block in pair)
    which = f"the one with {second} here, the one with {first} by another statement"
    return TileError(
        f"two blocks write the same elements of `{one.name}`: {which}",
        other.span,
        notes=(("the other statement is here", one.span),),
        help="blocks run in no promised order: let each block store to windows of its own",
    )


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
    help = "blocks run in no promised order: let each block's window begin where no other one reaches"
    if any(e.op == "min" for e in target.starts):
        help = "leave the minimum out: what of a window lies beyond the end of a tensor is neither read nor written"
    return TileError(
        f"two blocks write the same elements of `{target.name}`: those with {one} and {other}, a window of {window} each",
        target.span, help=help,
    )  # fmt: skip
