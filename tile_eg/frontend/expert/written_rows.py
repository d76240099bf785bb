"""How much exists of a buffer that an element loop writes, in a kernel that is done in the order of its statements: as much as of
what it is computed of; of rows that are picked one by one, `x[i, j] = X[q[i], j]`, as many as of elements that pick them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from tile_eg.frontend.expert.accesses import Axes, Unfit
from tile_eg.frontend.expert.ends import Ends
from tile_eg.frontend.expert.extents import NOT_FOLLOWED, Extent, Extents, lesser
from tile_eg.frontend.expert.picked import Written, one_each, where_read
from tile_eg.frontend.expert.read_places import indices_there
from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.ranges import at_most
from tile_eg.frontend.ssa.extents import inside
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.index_elements import all_elements_in, elements_in
from tile_eg.ir.kernel import Assign, Region, Select
from tile_eg.ir.program import Tile


def there(r: Any, s: Assign) -> Expr:
    """That the elements exist which pick the row at hand."""
    found = indices_there(r, s.value)
    return found if r.ends is None else ix.both(found, where_read(r, r.ends, _starts(s), s.span))


@contextmanager
def anew(r: Any, s: Assign, axes: Axes) -> Iterator[None]:
    """Where all rows of a buffer are written it matters not how much of it existed. Unfit leaves that as it was."""
    before = r.ends.known.get(s.target.name) if r.ends is not None and _is_whole(r, s, axes) else None
    if before is not None:
        del r.ends.known[s.target.name]
    try:
        yield
    except Unfit:
        if before is not None:
            r.ends.known[s.target.name] = before
        raise


@contextmanager
def noted(r: Any, s: Assign, axes: Axes) -> Iterator[None]:
    """Notes how much exists of a buffer of which the rows were written that are there; the others become zeros meanwhile."""
    name, ends = s.target.name, r.ends
    along = ends.known.get(name, (None, ix.const(axes.cols)))[1] if ends is not None else None
    yield
    if ends is not None:
        ends.known[name] = (_rows(r, ends, s, axes), along) if _is_whole(r, s, axes) else NOT_FOLLOWED
        ends.shared(r, name)


@contextmanager
def followed(r: Any, s: Assign, axes: Axes) -> Iterator[None]:
    """Where all of a buffer is computed, meanwhile, of elements in the same place, in their row or in their column, as much of it
    exists as of these."""
    name, ends = s.target.name, r.ends
    branches = any(isinstance(e, Select) and not axes.uses(e.condition) for e in nodes(s.value))
    exists = _of_operands(r, s, axes) if ends is not None and not branches and _is_whole(r, s, axes) else None
    yield
    if exists is not None:
        ends.known.pop(name, None)
        if exists != (ix.const(axes.rows), ix.const(axes.cols)):
            ends.known[name] = exists
        ends.shared(r, name)


def _of_operands(r: Any, s: Assign, axes: Axes) -> Extents | None:
    """How many rows and columns exist of what a value is made of; None where that is not followed."""
    down: Extent = ix.const(axes.rows)
    along: Extent = ix.const(axes.cols)
    for e in (e for e in nodes(s.value) if isinstance(e, Region)):
        own = _of_operand(r, e, axes)
        if own is None:
            return None
        down, along = lesser(down, own[0], axes.rows), lesser(along, own[1], axes.cols)
    return None if down is None or along is None else (down, along)


def _of_operand(r: Any, e: Region, axes: Axes) -> Extents | None:
    """How many rows and columns an operand allows; None where that is not followed."""
    full: Extents = ix.const(axes.rows), ix.const(axes.cols)
    if e.name in r.tensors or any(map(elements_in, e.starts)):
        return None
    if e.name not in r.ends.known:
        return full
    (down, along), shape = r.ends.known[e.name], r.held[e.name].shape
    row, col = ix.var(axes.row or ""), ix.var(axes.col or "")
    match e.starts:
        case (i, j) if (i, j) == (row, col) and shape == (axes.rows, axes.cols):
            return down, along
        case (i, j) if (i, j) == (row, ZERO) and shape == (axes.rows, 1):
            return down, full[1]
        case (i,) if i == row and shape == (axes.rows,):
            return along, full[1]
        case (j,) if j == col and shape == (axes.cols,):
            return full[0], along
    return None


def _starts(s: Assign) -> list[Expr]:
    return [start for e in nodes(s.value) if isinstance(e, Region) for start in e.starts]


def _is_whole(r: Any, s: Assign, axes: Axes) -> bool:
    """Whether a loop writes all of a buffer."""
    at = ix.var(axes.row or ""), ix.var(axes.col or "")
    return s.target.name in r.held and s.target.starts == at and r.held[s.target.name].shape == (axes.rows, axes.cols)


def _rows(r: Any, ends: Ends, s: Assign, axes: Axes) -> Extent:
    """How many rows there are: as many as of elements, side by side in a vector or a tensor, that pick one each."""
    found: Extent = ix.const(axes.rows)
    for e in sorted({x for start in _starts(s) for x in all_elements_in(start)}, key=str):
        found = lesser(found, _rows_of(r, ends, e, axes), axes.rows)
    return found


def _rows_of(r: Any, ends: Ends, e: Expr, axes: Axes) -> Extent:
    name, place = e.args[:2]
    row, down = axes.row or "", axes.rows
    if name in r.tensors:
        size, first = prod(r.tensors[name].shape), place - ix.var(row)
        if at_most(place, size - 1, r.ranges, r.within):
            return ix.const(down)
        return None if row in ix.variables(first) else inside(first, down, size, r.ranges, 1, r.within)
    if name not in ends.known and name not in ends.beyond:
        return ix.const(down)
    return one_each(r, ends, Written(Tile(name, ZERO, ZERO), row, axes.col or "", "", (place,)), e, (down, axes.cols))[0]
