"""Indices that are read, in a kernel that is done in the order of its statements: each has to lie in its own dimension.

The memory alone does not tell: behind the end of a row lies the next one. The first dimension is not asked, as what lies
beyond it lies beyond the tensor, which the simulator sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from tile_eg.errors import Span, TileError, attempted
from tile_eg.frontend.expert.nodes import On
from tile_eg.frontend.expert.picked import where_read
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.ranges import at_most
from tile_eg.frontend.read_indices import never_inside, outside
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.index_elements import all_elements_in, elements_in, indices_of
from tile_eg.ir.kernel import Region, Tensor, TileExpr
from tile_eg.ir.program import Formula, Print, When


def checked(r: Any, t: Tensor, read: Region, starts: tuple[Expr, ...], found: Place) -> None:
    """Adds what tells an index of `read` that lies outside of its dimension of `t`; `starts` are its indices as the scalar unit
    has them. Where a plain index may do so, it is noted in which place the element lies inside. TileError if it always does."""
    _check_inside(r, f"a window of `{t.name}` lies outside", tuple(zip(starts, t.shape, strict=True)), read.span)
    if r.ends is None:
        return
    there = ix.ONE
    for axis, (start, size) in enumerate(zip(starts, t.shape, strict=True)):
        if read.extents[axis] is not None:
            continue
        if not elements_in(start):
            sure = at_most(start, size - 1, r.ranges, r.within) or _is_below(start, size, r.within, r.ranges)
            there = there if sure else ix.both(there, ix.less(start, size))
        elif axis:
            _told(r, t.name, read.starts, axis, start, size, read.span)
    if found.element:
        r.ends.inside[found.operand] = there


def indices_there(r: Any, value: TileExpr) -> Expr:
    """That the elements of tensors exist which are indices in a value: where one lies behind its tensor's end, what it would pick
    does not exist."""
    found = ix.ONE
    if r.ends is None:
        return found
    starts = (start for e in nodes(value) if isinstance(e, Region) for start in e.starts)
    for read in sorted({x for start in starts for x in all_elements_in(start) if x.args[0] in r.tensors}, key=str):
        for index, size in indices_of(read, prod(r.tensors[read.args[0]].shape)):
            if not at_most(index, size - 1, r.ranges, r.within):
                found = ix.both(found, ix.less(index, size))
    return found


def _is_below(start: Expr, size: int, condition: Expr, ranges: Mapping[str, Interval]) -> bool:
    """Whether a condition says itself that an index is below a number."""
    if condition.op == "and":
        return any(_is_below(start, size, c, ranges) for c in condition.args)
    if condition.op != "lt":
        return False
    behind = (start - condition.args[0]).value
    return behind is not None and ix.bounds(condition.args[1], ranges)[1] + behind <= size


def indices_checked(r: Any, read: Expr, span: Span | None) -> None:
    """The indices of an element that is read as an index itself. TileError where one surely lies outside of its dimension; adds
    what tells one that is read, where the kernel is done in the order of its statements."""
    name, _, _, indices = read.args
    _check_inside(r, f"an index is read outside of `{name}`", indices, span)
    for axis, (index, size) in enumerate(indices):
        if axis and r.ends is not None and elements_in(index):
            _told(r, name, (index,), axis, r.unit.settled(r, index, span), size, span)


def _check_inside(r: Any, what: str, indices: ix.Indices, span: Span | None) -> None:
    for axis, (index, size) in enumerate(indices):
        if elements_in(index) or ix.variables(index) - r.ranges.keys():
            continue
        value = never_inside(index, size, r.ranges, r.within)
        if value is not None:
            raise outside(what, axis, index, value, size, span)


def _told(r: Any, name: str, read: tuple[Expr, ...], axis: int, start: Expr, size: int, span: Span | None) -> None:
    inside = ix.ONE
    for c in (ix.less(-1, start), ix.less(start, size)):
        inside = inside if ix.bounds(c, r.ranges) == (1, 1) else ix.both(inside, c)
    if inside.value == 1:
        return
    followed = attempted(lambda: where_read(r, r.ends, read, span))
    if isinstance(followed, TileError):  # it is refused where it is used
        return
    there = r.unit.settled(r, followed, span)
    text = f"an index of {name} that is read is %d: dimension {axis} has {size} elements"
    told = Print(text, (Formula("index", (start,), True),), holds=inside, span=span)
    r.place_node(r.core, told if there.value == 1 else When(there, (On(r.core, told),)))  # type: ignore[arg-type]


def arm(r: Any, condition: Any, chosen: int, made: Callable[[], Formula], span: Span | None) -> Formula:
    """An arm of a choice of the scalar unit, taken where the condition is `chosen` (1 or 0): its indices matter there alone."""
    with r.block(repeats=False) as nodes:
        found = made()
    for on in nodes:
        if _tells(on.node):
            r.place_node(None, When(_holds(r, condition, chosen, span), (on,)))
        else:
            r.place_node(on.core, on.node)
    return found


def _tells(node: Any) -> bool:
    body: tuple[Any, ...] = node.body if isinstance(node, When) else ()
    return isinstance(node, Print) or (bool(body) and all(_tells(on.node) for on in body))


def _holds(r: Any, condition: Any, chosen: int, span: Span | None) -> Expr:
    e = r.unit.settled(r, condition if isinstance(condition, Expr) else r.unit.number(r, condition, span), span)
    return e if chosen else 1 - e
