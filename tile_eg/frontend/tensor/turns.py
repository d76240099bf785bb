"""Two values whose elements take turns along rows, `stack([a, b], axis=-1)` and a reshape: each is computed and stored by itself.

As with a join, an operation on such a value is one of the operation on its parts. Where it is not, each element is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from tile_eg.errors import Span
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.shapes import Shape
from tile_eg.frontend.tensor.values import Value
from tile_eg.ops.elementwise import REDUCE

Outside = Callable[[Value], Value]
"""Gives a value with its joins outside of all else."""
ELEMENTWISE = ("unary", "binary", "compare", "logic", "where", "cast", "stored")


def of_reshape(x: Value) -> Value | None:
    """A reshape of two values that are stacked along the last axis, which makes these rows of one; None where it is something
    else."""
    (o,) = x.of
    last = len(o.shape) - 1
    stacked = len(o.of) == 2 and o.args == (last,) and o.shape[last] == 2
    if not stacked or not x.shape or x.shape[-1] % 2 or x.shape[-1] == 2:
        return None
    shape = (*x.shape[:-1], x.shape[-1] // 2)
    return _turns([v.reshape(p, shape, x.span) for p in o.of], len(shape) - 1, x)


def _turns(parts: Sequence[Value], axis: int, like: Value) -> Value:
    return Value("turns", tuple(parts), (axis,), like.shape, like.dtype, like.span, truth=like.truth)


def outside(made: Outside, x: Value) -> Value:
    """An operation on operands of which one is in turns."""
    way = _elementwise if x.op in ELEMENTWISE else _WAYS.get(x.op)
    found = way(made, x) if way else None
    if found is None:
        of = tuple(made(chosen(o, x.span)) if o.op == "turns" else o for o in x.of)
        return made(replace(x, of=of))
    return made(found) if found.op != "turns" else replace(found, of=tuple(map(made, found.of)))


def chosen(o: Value, span: Span | None) -> Value:
    """The same with each element chosen by its place."""
    (axis,) = o.args
    behind = [v.Slice()] * (len(o.shape) - 1 - axis)
    first, second = (v.window(p, [*[v.Slice()] * (axis + 1), v.NEW_AXIS, *behind], span) for p in o.of)
    place = v.window(v.arange(2, span), [v.Slice(), *[v.NEW_AXIS] * len(behind)], span)
    odd = v.compare("eq", place, v.number(1, span), span)
    return v.reshape(v.where(odd, second, first, span), o.shape, span)


def _elementwise(made: Outside, x: Value) -> Value:
    o = next(o for o in x.of if o.op == "turns")
    from_end = len(o.shape) - o.args[0]
    parts = []
    for n in range(2):
        of = tuple(_every(made, p, len(p.shape) - from_end, n) for p in x.of)
        parts.append(replace(x, of=of, shape=_halved(x.shape, len(x.shape) - from_end)))
    return _turns(parts, len(x.shape) - from_end, x)


def _every(made: Outside, x: Value, axis: int, first: int) -> Value:
    """Every second element along an axis; the whole where its one element is repeated."""
    if axis < 0 or x.shape[axis] == 1:
        return x
    if x.op == "turns" and x.args == (axis,):
        return x.of[first]
    return made(v.window(x, [*[v.Slice()] * axis, v.Slice(first, None, 2)], x.span))


def _reshape(made: Outside, x: Value) -> Value | None:
    (o,) = x.of
    (axis,) = o.args
    inner = prod(o.shape[axis + 1 :])
    for place in range(len(x.shape)):
        if prod(x.shape[place + 1 :]) == inner and x.shape[place] % 2 == 0:
            return _turns([v.reshape(p, _halved(x.shape, place), x.span) for p in o.of], place, x)
    return None


def _reduce(made: Outside, x: Value) -> Value | None:
    (o,), (op, along) = x.of, x.args
    (axis,) = o.args
    if axis in along:
        first, second = (made(replace(x, of=(p,))) for p in o.of)
        return v.binary(REDUCE[op].joins, first, second, x.span)
    place = axis - sum(a < axis for a in along)
    return _turns([replace(x, of=(p,), shape=_halved(x.shape, place)) for p in o.of], place, x)


def _window(made: Outside, x: Value) -> Value | None:
    (o,) = x.of
    (axis,) = o.args
    at = [n for n, item in enumerate(x.args) if item is not None][axis]
    place = at - sum(x.args[n] is not None and x.args[n][1] is None for n in range(at))
    start, size, step = x.args[at]

    def part(of: Value, item: object, shape: Shape) -> Value:
        return replace(x, of=(of,), args=(*x.args[:at], item, *x.args[at + 1 :]), shape=shape)

    if step == 1 and size is not None and size % 2 == 0:
        halves = [(o.of[n % 2], (n // 2, size // 2, 1)) for n in (start, start + 1)]
        return _turns([part(p, item, _halved(x.shape, place)) for p, item in halves], place, x)
    if size is None or step % 2 == 0:
        return part(o.of[start % 2], (start // 2, size, step if size is None else step // 2), x.shape)
    return None


def _halved(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])


_WAYS: dict[str, Callable[[Outside, Value], Value | None]] = {"reshape": _reshape, "reduce": _reduce, "window": _window}
