"""Values one behind the other along an axis, `concatenate` and what is made of it: each part is computed and stored by itself.

An operation on a join is a join of the operation on its parts: elementwise operations, products and reductions along other axes,
transposes. A reduction along the axis of a join is made of those of its parts. So joins come to stand at the outputs, whose parts
are outputs of a kernel of their own, each at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

from tile_eg.errors import Span, TileError
from tile_eg.frontend.tensor import turns
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.shapes import Shape
from tile_eg.frontend.tensor.values import Value
from tile_eg.ops.elementwise import REDUCE
from tile_eg.ops.records import record

MOST_PARTS = 64
"""The most parts of one output, each of which is stored by statements of its own: assumed."""


@record
class Part:
    """What an output holds from an index of each axis on; elements so many `steps` apart."""

    at: tuple[int, ...]
    value: Value
    steps: tuple[int, ...]


def join(parts: Sequence[Value], axis: int, span: Span | None = None) -> Value:
    """Values one behind the other along an axis, counted from the last one where it is below 0."""
    if not parts:
        raise TileError("there is nothing to join", span)
    first = parts[0]
    if not all(p.shape for p in parts):
        raise TileError("single numbers are not joined", span, help="give each an axis: x[None]")
    at = v.axis_of(axis, first, span)
    for p in parts[1:]:
        if len(p.shape) != len(first.shape) or p.shape[:at] + p.shape[at + 1 :] != first.shape[:at] + first.shape[at + 1 :]:
            help = "all sizes but that of the axis along which they lie are the same"
            raise TileError(f"{first} and {p} do not lie one behind the other along axis {axis}", span, help=help)
    parts = _of_one_type(parts, span)
    parts = [p for p in parts if p.shape[at]] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    dtype = parts[0].dtype
    shape = (*first.shape[:at], sum(p.shape[at] for p in parts), *first.shape[at + 1 :])
    return Value("join", tuple(parts), (at,), shape, dtype, span, truth=parts[0].truth)


def _of_one_type(parts: Sequence[Value], span: Span | None) -> Sequence[Value]:
    """Values as the type of all of them; conditions beside numbers are 1 and 0."""
    first, *others = [p for p in parts if not p.truth] or parts
    dtype = first.dtype
    for p in others:
        dtype = v.common(replace(first, dtype=dtype), p, span)
    if dtype is None:
        return parts
    return [v.ones(p, dtype, p.span) if p.truth else v.cast(dtype, p, span) if p.dtype != dtype else p for p in parts]


def parts_of(value: Value, known: Joins) -> list[Part]:
    """The parts of an output, at their places."""
    found = list(_parts(known.of(value), (0,) * len(value.shape), (1,) * len(value.shape)))
    if value.dtype is not None and value.dtype.bits == 8 and any(_torn(p, value.shape) for p in found):
        help = "give it 16 bits, x.astype('int16') or where(c, 1.0, 0.0), and cast the array behind the call"
        message = "two parts of this output share a pair of bytes, and the stores of both have no order"
        raise TileError(message, value.span, help=help)
    if len(found) > MOST_PARTS:
        message = f"this output has {len(found)} parts, each stored by itself: {MOST_PARTS} at most"
        raise TileError(message, value.span, help="make it with fewer, or choose between two values: where(arange(n) < m, x, y)")
    return found


def _torn(p: Part, shape: Shape) -> bool:
    """Whether a part ends within a pair of bytes, with another one behind or before it."""
    for axis, (start, size, whole) in enumerate(zip(p.at, p.value.shape, shape, strict=True)):
        start, size = start // p.steps[axis] * p.steps[axis], size * p.steps[axis]
        inner, outer = prod(shape[axis + 1 :]), prod(shape[:axis])
        ends = start, start + size if start + size < whole else 0, whole if outer > 1 else 0
        if size != whole and inner % 2 and any(n % 2 for n in ends):
            return True
    return False


def _parts(x: Value, at: tuple[int, ...], steps: tuple[int, ...]) -> Iterator[Part]:
    if x.op not in ("join", "turns"):
        yield Part(at, x, steps)
        return
    (axis,), start = x.args, 0
    every = len(x.of) if x.op == "turns" else 1
    for p in x.of:
        place = at[axis] + start * steps[axis]
        yield from _parts(p, (*at[:axis], place, *at[axis + 1 :]), (*steps[:axis], steps[axis] * every, *steps[axis + 1 :]))
        start += 1 if every > 1 else p.shape[axis]


class Joins:
    """Values in which joins stand outside of all else; each is made once."""

    def __init__(self) -> None:
        self.made: dict[Value, Value] = {}
        self.cuts: dict[tuple[Value, int, int, int], Value] = {}

    def of(self, x: Value) -> Value:
        stack = [x]
        while stack:
            top = stack[-1]
            left = [o for o in top.of if o not in self.made]
            if top in self.made or not left:
                stack.pop()
                if top not in self.made:
                    self.made[top] = self._outside(top, tuple(self.made[o] for o in top.of))
            else:
                stack += left
        return self.made[x]

    def _outside(self, x: Value, of: tuple[Value, ...]) -> Value:
        """An operation on operands whose joins stand outside."""
        same = x if of == x.of else replace(x, of=of)
        if x.op != "join" and any(o.op == "turns" for o in of):
            return turns.outside(self.of, same)
        if x.op == "join" or not any(o.op == "join" for o in of):
            return same
        way = self._elementwise if x.op in turns.ELEMENTWISE else getattr(self, f"_{x.op}")
        found: Value = way(same)
        return found

    def _of_parts(self, parts: Sequence[Value], axis: int, like: Value) -> Value:
        """Parts as operations on them give them, with their joins outside."""
        return Value("join", tuple(map(self.of, parts)), (axis,), like.shape, like.dtype, like.span, truth=like.truth)

    def _cut(self, x: Value, axis: int, start: int, size: int) -> Value:
        """A part of a value along an axis; the whole where its one element is repeated."""
        if not 0 <= axis < len(x.shape) or x.shape[axis] == 1 or (start, size) == (0, x.shape[axis]):
            return x
        key = x, axis, start, size
        if key not in self.cuts:
            items = [v.Slice()] * axis + [v.Slice(start, start + size)]
            self.cuts[key] = self.of(v.window(x, items, x.span))
        return self.cuts[key]

    def _along(self, x: Value, from_end: int, operands: Sequence[int], ranks: Callable[[int], int]) -> Value:
        """x in the parts of its first operand that is a join along its axis `from_end`: the others are cut as that is."""
        axis = len(x.shape) - from_end
        first = next(x.of[n] for n in operands if _joined_at(x.of[n], ranks(n)))
        sizes = [p.shape[first.args[0]] for p in first.of]
        parts = []
        for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
            of = [self._cut(o, ranks(n), start, size) if n in operands else o for n, o in enumerate(x.of)]
            parts.append(replace(x, of=tuple(of), shape=_with(x.shape, axis, size)))
        return self._of_parts(parts, axis, x)

    def _elementwise(self, x: Value) -> Value:
        o = next(o for o in x.of if o.op == "join")
        from_end = len(o.shape) - o.args[0]
        return self._along(x, from_end, range(len(x.of)), lambda n: len(x.of[n].shape) - from_end)

    def _reduce(self, x: Value) -> Value:
        (o,), (op, along) = x.of, x.args
        (axis,) = o.args
        if axis in along:
            parts = [self.of(replace(x, of=(p,))) for p in o.of]
            out = parts[0]
            for p in parts[1:]:
                out = v.binary(REDUCE[op].joins, out, p, x.span)
            return self.of(out)
        place = axis - sum(a < axis for a in along)
        return self._of_parts([replace(x, of=(p,), shape=_with(x.shape, place, p.shape[axis])) for p in o.of], place, x)

    def _scan(self, x: Value) -> Value:
        (o,), (op, along) = x.of, x.args
        (axis,) = o.args
        each = [replace(x, of=(p,), shape=p.shape) for p in o.of]
        if axis != along:
            return self._of_parts(each, axis, x)
        if op != "cumsum":
            help = "make it an output of a kernel, and an input of another"
            raise TileError(f"`{op}` does not go along the axis of `concatenate`", x.span, help=help)
        out, before = each[:1], v.reduce("sum", o.of[0], axis, True, x.span)
        for e, p in zip(each[1:], o.of[1:], strict=True):
            out.append(v.binary("add", e, before, x.span))
            before = v.binary("add", before, v.reduce("sum", p, axis, True, x.span), x.span)
        return self._of_parts(out, axis, x)

    def _matmul(self, x: Value) -> Value:
        a, b = x.of
        depth = len(a.shape) - 1, max(len(b.shape) - 2, 0)
        for n, o in enumerate(x.of):
            if _joined_at(o, depth[n]):
                return self._deep(x, o, depth)
        a_ends, b_ends = min(len(a.shape), 2), min(len(b.shape), 2)
        o = next(o for o in x.of if o.op == "join")
        (axis,) = o.args
        if o is a and axis == len(a.shape) - 2:
            return self._along(x, b_ends, (0,), lambda n: axis)
        if o is b and axis == len(b.shape) - 1:
            return self._along(x, 1, (1,), lambda n: axis)
        from_lead = len(o.shape) - (a_ends if o is a else b_ends) - axis  # of an axis of the batch, from the last of these
        own = [len(p.shape) - e - from_lead for p, e in zip(x.of, (a_ends, b_ends), strict=True)]
        return self._along(x, from_lead + (a_ends == 2) + (b_ends == 2), (0, 1), lambda n: own[n])

    def _deep(self, x: Value, o: Value, depth: tuple[int, int]) -> Value:
        """A product whose depth is in parts: the sum of theirs."""
        out, start = None, 0
        for p in o.of:
            size = p.shape[o.args[0]]
            of = tuple(self._cut(y, d, start, size) for y, d in zip(x.of, depth, strict=True))
            part = self.of(replace(x, of=of))
            out = part if out is None else v.binary("add", out, part, x.span)
            start += size
        assert out is not None
        return self.of(out)

    def _permute(self, x: Value) -> Value:
        (o,) = x.of
        (axis,) = o.args
        place = x.args.index(axis)
        return self._of_parts([replace(x, of=(p,), shape=_with(x.shape, place, p.shape[axis])) for p in o.of], place, x)

    def _reshape(self, x: Value) -> Value:
        (o,) = x.of
        (axis,) = o.args
        inner = prod(o.shape[axis + 1 :])
        for place in range(len(x.shape)):
            behind = prod(x.shape[place + 1 :])
            if prod(x.shape[:place]) == prod(o.shape[:axis]) and all(p.shape[axis] * inner % behind == 0 for p in o.of):
                shapes = [_with(x.shape, place, p.shape[axis] * inner // behind) for p in o.of]
                return self._of_parts([v.reshape(p, s, x.span) for p, s in zip(o.of, shapes, strict=True)], place, x)
        if (found := turns.of_reshape(x)) is not None:
            return replace(found, of=tuple(map(self.of, found.of)))
        if all(p.shape[axis] == 1 for p in o.of):
            return self.of(replace(x, of=(_chosen(o),)))
        help = "reshape each part before they are joined, or store the join and reshape it in a kernel of its own"
        raise TileError("a reshape goes across the parts of `concatenate`", x.span, help=help)

    def _window(self, x: Value) -> Value:
        (o,) = x.of
        (axis,) = o.args
        old = [n for n, item in enumerate(x.args) if item is not None]
        at = old[axis]
        place = at - sum(x.args[n] is not None and x.args[n][1] is None for n in range(at))
        start, size, step = x.args[at]
        parts, first = [], 0
        for p in o.of:
            own = [i - first for i in range(start, start + step * (size or 1), step) if first <= i < first + p.shape[axis]]
            first += p.shape[axis]
            if own:
                item = own[0], None if size is None else len(own), step
                shape = x.shape if size is None else _with(x.shape, place, len(own))
                part = replace(x, of=(p,), args=(*x.args[:at], item, *x.args[at + 1 :]), shape=shape)
                parts.append(part)
        if len(parts) == 1:
            return self.of(parts[0])
        return self._of_parts(parts[:: 1 if step > 0 else -1], place, x)

    def _slide(self, x: Value) -> Value:
        help = "make the join an output of one kernel, and an input of another; zeros around an image are `padding`"
        raise TileError("windows go across the parts of `concatenate`", x.span, help=help)

    def _gather(self, x: Value) -> Value:
        (o, *indices), (axes, place, count) = x.of, x.args
        lead = [len(i.shape) - i.args[0] for i in indices if i.op == "join"]
        if lead:
            behind = len(x.shape) - place - count
            ranks: Callable[[int], int] = lambda n: len(x.of[n].shape) - lead[0]  # noqa: E731
            return self._along(x, lead[0] + behind, range(1, len(x.of)), ranks)
        (axis,) = o.args
        if axis in axes:
            help = "take elements of each part, or make the join an output of a kernel, and an input of another"
            raise TileError("indices pick elements across the parts of `concatenate`", x.span, help=help)
        left = axis - sum(a < axis for a in axes)
        at = left if left < place else left + count
        return self._of_parts([replace(x, of=(p, *indices), shape=_with(x.shape, at, p.shape[axis])) for p in o.of], at, x)


def _joined_at(x: Value, axis: int) -> bool:
    return x.op == "join" and x.args[0] == axis


def _with(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _chosen(o: Value) -> Value:
    """A join of parts of one index each as a choice by the index."""
    (axis,), span = o.args, o.span
    places = v.window(v.arange(len(o.of), span), [v.Slice(), *[v.NEW_AXIS] * (len(o.shape) - 1 - axis)], span)
    out = o.of[-1]
    for n in reversed(range(len(o.of) - 1)):
        out = v.where(v.compare("eq", places, v.number(n, span), span), o.of[n], out, span)
    return out
