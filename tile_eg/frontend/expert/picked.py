"""Elements that are picked by others, in a kernel that is done in the order of its statements: they exist as far as a
tensor's end has not cut off what says where they are."""

from __future__ import annotations

from collections.abc import Iterable

from tile_eg.errors import Span
from tile_eg.frontend.expert.ends import Ends, not_followed
from tile_eg.frontend.expert.extents import NOT_FOLLOWED, Buffers, Extent, Extents, Shape, lesser, shape_of
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.program import Tile
from tile_eg.ops.records import record


def where_read(r: Buffers, ends: Ends, indices: Iterable[Expr], span: Span | None) -> Expr:
    """That the elements exist which these indices are made of. TileError where that is not followed."""
    found = ends.meant(*indices)
    for e in (e for index in indices for e in all_elements_in(index)):
        name, place = e.args[:2]
        if name not in ends.known:
            continue
        (down, along), (rows, cols) = ends.known[name], shape_of(r, Tile(name))
        if down is None or along is None:
            raise not_followed(name, span)
        row, col = (ix.ZERO, place) if rows == 1 else (place // cols, place % cols)
        found = ix.both(found, ix.both(ix.less(row, down), ix.less(col, along)))
    return found


@record
class Written:
    """A buffer that is written element by element with those of buffer `of` at `starts`; `row` and `col` are the loop's variables
    of its rows and columns."""

    to: Tile
    row: str | None
    col: str
    of: str
    starts: tuple[Expr, ...]


def gathered(r: Buffers, ends: Ends, w: Written) -> None:
    """Each element of a buffer was written."""
    shape = shape_of(r, w.to)
    down: Extent = ix.const(shape[0])
    along: Extent = ix.const(shape[1])
    whole, full = (w.to.row.value, w.to.col.value) == (0, 0), (down, along)
    reads = {e for index in w.starts for e in all_elements_in(index)}
    found = [one_each(r, ends, w, e, shape) for e in reads if e.args[0] in ends.known or e.args[0] in ends.beyond]
    found += [_of_source(r, ends, w, shape)] if w.of in ends.known else []
    for own in found:
        own = own if whole else NOT_FOLLOWED
        down, along = lesser(down, own[0], shape[0]), lesser(along, own[1], shape[1])
    if (down, along) != full:
        ends.known[w.to.buffer] = down, along
    elif whole:
        ends.known.pop(w.to.buffer, None)
    ends.parts.pop(w.to.buffer, None)


def _of_source(r: Buffers, ends: Ends, w: Written, shape: Shape) -> Extents:
    """How many rows and columns there are of what is copied from another place of a buffer."""
    (down, along), (rows, cols) = ends.known[w.of], shape_of(r, Tile(w.of))
    row, col = None if w.row is None else ix.var(w.row), ix.var(w.col)
    if len(w.starts) == 2 and w.starts == (row, col) and shape == (rows, cols):
        return down, along
    return (along, down) if len(w.starts) == 2 and w.starts == (col, row) and shape == (cols, rows) else NOT_FOLLOWED


def one_each(r: Buffers, ends: Ends, w: Written, e: Expr, shape: Shape) -> Extents:
    """How many rows and columns there are of what is written with one of these elements each."""
    name, place = e.args[:2]
    if name not in ends.known:
        return NOT_FOLLOWED
    (down, along), (rows, cols) = ends.known[name], shape_of(r, Tile(name))
    row, col = None if w.row is None else ix.var(w.row), ix.var(w.col)
    if row is not None and (rows, cols) == shape and place == row * cols + col:
        return down, along
    if (rows, cols, place) == (1, shape[1], col):
        return ix.const(shape[0]), along
    return (along, ix.const(shape[1])) if (rows, cols, place) == (1, shape[0], row) else NOT_FOLLOWED
