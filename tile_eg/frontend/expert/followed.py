"""How much exists of what is moved between memories and multiplied, in a kernel that is done in the order of its statements.

What a tensor's end cuts off of a tile is cut off of its product, of copies of that, and of a workspace that it is stored to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.extents import NOT_FOLLOWED, Extent, Extents, lesser, shape_of
from tile_eg.frontend.expert.places import Place
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in, elements_in
from tile_eg.ir.program import Gm, Tile
from tile_eg.ops.types import Level

if TYPE_CHECKING:
    from tile_eg.frontend.expert.reader import ExpertReader


def exists(r: ExpertReader, p: Place, axes: Iterable[int] = (0, 1)) -> Extents:
    """The rows and columns of a window that exist, from its first on; None where that is not followed. `axes` matter."""
    if r.ends is None or p.cut:
        return _all_or_none(p.valid_rows, p.rows), _all_or_none(p.valid_cols, p.cols)
    if isinstance(p.operand, Gm):
        return _stored(r, p, p.operand)
    r.ends.read(p.operand.buffer, p.span, axes)
    if p.operand.buffer not in r.ends.known:
        return p.valid_rows, p.valid_cols
    t, known, full = p.operand, r.ends.known[p.operand.buffer], shape_of(r, p.operand)
    return _part(r, known[0], t.row, full[0], p.rows), _part(r, known[1], t.col, full[1], p.cols)


def _all_or_none(extent: Expr, count: int) -> Expr:
    """All elements, where a place that is read tells one of the windows that lie side by side and fill a tensor."""
    if extent.op == "min" and ix.const(count) in extent.args and elements_in(extent):
        (other,) = (a for a in extent.args if a != ix.const(count))
        if all(c % count == 0 for c in ix.terms_of(other).values()):
            return ix.const(count)
    return extent


def is_cut(r: ExpertReader, p: Place) -> bool:
    """Whether it is known that some of a window does not exist, and how much."""
    down, along = exists(r, p)
    return None not in (down, along) and (down, along) != (ix.const(p.rows), ix.const(p.cols))


def _part(r: ExpertReader, extent: Extent, start: Expr, size: int, count: int) -> Extent:
    if extent is None:
        return None
    if extent.value == size:
        return ix.const(count)
    if start.value == 0 and count == size:
        return extent
    return ix.simplified(ix.minimum(count, ix.maximum(0, extent - start)), r.ranges)


def _stored(r: ExpertReader, p: Place, at: Gm) -> Extents:
    """What exists of a window of a tensor that the kernel has written, as far as its end goes."""
    assert r.ends is not None
    full: Extents = p.valid_rows, p.valid_cols
    kept = r.ends.stored.get(at.tensor, {})
    if not kept or all(e is None for e in kept.values()):
        return full
    for (window, rows, cols), extents in kept.items():
        shift = _rows_behind(window, at)
        if shift is None or cols != p.cols or ix.bounds(shift, r.ranges)[1] + p.rows > rows:
            continue
        if extents is None:
            return full
        return _part(r, extents[0], shift, rows, p.rows), extents[1]
    return None, None


def _rows_behind(window: Gm, at: Gm) -> Expr | None:
    """By how many rows one window of a tensor begins behind another one; None where it does not begin below it."""
    behind = at.offset - window.offset
    if behind.value == 0:
        return ix.ZERO
    stride = ix.wrap(window.stride).value
    if window.stride != at.stride or not stride or any(c % stride for c in ix.terms_of(behind).values()):
        return None
    return ix.from_terms({e: c // stride for e, c in ix.terms_of(behind).items()})


def copied(r: ExpertReader, source: Place, target: Place, padded: bool = False, turned: bool = False) -> None:
    """`target` was copied from `source`."""
    if r.ends is None or (source.level, target.level) == (Level.UB, Level.UB):
        return
    down, along = NOT_FOLLOWED if _is_picked_beyond(r, source) else exists(r, source)
    if turned:
        down, along = along, down
    if isinstance(target.operand, Gm):
        full = (ix.const(target.rows), ix.const(target.cols))
        window = (target.operand, target.rows, target.cols)
        kept = r.ends.stored.setdefault(target.operand.tensor, {})
        kept[window] = None if (down, along) == full else (down, along)
        return
    r.ends.moved.add(target.tile().buffer)
    if source.level is Level.GM and None not in (down, along):
        r.ends.loaded(r, target, replace(source, valid_rows=down, valid_cols=along), padded)  # type: ignore[arg-type]
    else:
        r.ends.put(r, target, (down, along))


def _is_picked_beyond(r: ExpertReader, source: Place) -> bool:
    """Whether the element that says where a window of a tensor begins may be one that a tensor's end cuts off."""
    assert r.ends is not None
    at = source.operand
    return isinstance(at, Gm) and any(e.args[0] in r.ends.known or e.args[0] in r.ends.beyond for e in all_elements_in(at.offset))


def multiplied(r: ExpertReader, c: Place, left: tuple[Place, bool], right: tuple[Place, bool], begins: Expr) -> None:
    """`c` is the product of two operands, each with whether it is transposed, or has it added (where `begins` does not hold)."""
    if r.ends is None:
        return
    down, along = (exists(r, p, (axis,))[axis] for p, axis in ((left[0], int(left[1])), (right[0], 1 - right[1])))
    if begins.value == 0 and isinstance(c.operand, Tile) and c.operand.buffer in r.ends.filled:
        before = exists(r, c)
        down, along = lesser(before[0], down, c.rows), lesser(before[1], along, c.cols)
    varies = ix.variables(begins)
    r.ends.put(r, c, tuple(None if e is not None and ix.variables(e) & varies else e for e in (down, along)))  # type: ignore[arg-type]


def check_sorted(r: ExpertReader, x: Place, count: int, span: Span) -> None:
    """TileError where not all of the first elements of a window surely exist."""
    if r.ends is None:
        return
    down, along = r.ends.known.get(x.tile().buffer, (ix.const(x.rows), ix.const(x.cols)))
    row = x.rows == 1 and along is not None and ix.bounds(along, r.ranges)[0] >= count
    if not row and (down, along) != (ix.const(x.rows), ix.const(x.cols)):
        what = f"{count} elements of {x.tile().buffer} are sorted, of which a tensor's end may cut off some"
        raise TileError(what, span, help="say what stands there: T.copy(A[i, j], a, pad_value=-T.infinity())")
