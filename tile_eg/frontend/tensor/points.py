"""One element of a value, as an expression over axes: broadcasts, transposes, reshapes and windows are gone into indices.

The axes of an element are asked for from the outputs down. A reduction binds axes of its own; where the same dimension is
reduced several times, or is one of the output's, these are the same axis, so that loops over them can be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.tensor.axes import Atom, Axes
from tile_eg.frontend.tensor.indices import Affine, Axis, Element, Indices, aligned, axes_in, extent_of, reads, shared
from tile_eg.frontend.tensor.reshaped import groups, regrouped
from tile_eg.frontend.tensor.values import Value
from tile_eg.frontend.tensor.windows import is_input
from tile_eg.ops.elementwise import neutral
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, I32, DType

LINEAR = ("add", "sub", "mul")
DIVIDES = {"//": "div", "%": "mod"}


@record(eq=False)
class Point:
    """`op` is load, number, position, unary, binary, compare, logic, where, cast, fold, dot or scan.

    `args`: a load's tensor and indices, and the dimensions outside of which elements are 0 where there are such; a number; a
    position's Affine; the operation's name; a fold's (op, axes); a dot's axes; a scan's operation and axis.
    `axes` are the free ones. Floats are computed in f32: `dtype` is what the elements are then, `rounds` the type as which they
    are an operand of a product.
    """

    op: str
    of: tuple[Point, ...]
    args: tuple
    axes: frozenset[Axis]
    dtype: DType | None
    rounds: DType | None
    span: Span | None = field(default=None, compare=False)


class Points:
    """Makes each point once."""

    def __init__(self) -> None:
        self.made: dict[Any, Point] = {}
        self.reached: dict[Point, frozenset[Point]] = {}
        self.past: dict[Point, frozenset[Axis]] = {}

    def make(
        self, op: str, of: tuple[Point, ...] = (), args: tuple = (), dtype: DType | None = None,
        rounds: DType | None = None, span: Span | None = None, axes: frozenset[Axis] | None = None,
    ) -> Point:  # fmt: skip
        key = op, of, args, dtype, rounds
        if key not in self.made:
            free = frozenset[Axis]().union(*(p.axes for p in of)) if axes is None else axes
            self.made[key] = Point(op, of, args, free, dtype, rounds, span)
        return self.made[key]

    def fold(self, op: str, axes: tuple[Axis, ...], x: Point, rounds: DType | None = None, span: Span | None = None) -> Point:
        return self.make("fold", (x,), (op, axes), _computed(rounds) or F32, rounds, span, x.axes - set(axes))

    def dot(self, axes: tuple[Axis, ...], a: Point, b: Point, like: Point | Value) -> Point:
        rounds = like.rounds if isinstance(like, Point) else like.dtype
        return self.make("dot", (a, b), axes, _computed(rounds), rounds, like.span, (a.axes | b.axes) - set(axes))

    def binary(self, op: str, x: Point, y: Point, like: Point) -> Point:
        return self.make("binary", (x, y), (op,), like.dtype, like.rounds, like.span)

    def folds(self, p: Point) -> frozenset[Point]:
        """The folds and dots that a point reaches, those inside of others included; itself where it is one."""
        if p not in self.reached:
            own = frozenset([p]) if p.op in ("fold", "dot") else frozenset[Point]()
            self.reached[p] = own.union(*(self.folds(x) for x in p.of))
        return self.reached[p]

    def past_ends(self, p: Point) -> frozenset[Axis]:
        """The axes along which a point loads what may lie outside of its tensors: it does not end where these do."""
        if p not in self.past:
            own = (a for n in p.args[2] for a in p.args[1][n].axes) if p.op == "load" and len(p.args) > 2 else ()
            self.past[p] = frozenset(own).union(*map(self.past_ends, p.of)) & p.axes
        return self.past[p]

    def folds_in_order(self, roots: Sequence[Point]) -> list[Point]:
        """The folds below some points, in the order in which they are met."""
        out, seen, stack = [], set[Point](), list(reversed(roots))
        while stack:
            p = stack.pop()
            if p in seen:
                continue
            seen.add(p)
            stack += reversed(p.of)
            if p.op in ("fold", "dot"):
                out.append(p)
        return out


def _computed(dtype: DType | None) -> DType | None:
    """The type in which elements of one are computed."""
    return dtype if dtype is None or dtype.whole else F32


class Puller:
    """Elements of values at given indices."""

    def __init__(self, axes: Axes, points: Points) -> None:
        self.axes, self.points = axes, points
        self.known: dict[tuple[Atom, int], Axis] = {}
        self.pulled: dict[tuple[Value, Indices], Point] = {}

    def axis(self, atom: Atom, used: set[Axis]) -> Axis:
        """The first axis over a dimension that is not used yet; it is from now on."""
        number = 0
        while (found := self.known.setdefault((atom, number), Axis(atom, number, len(self.known)))) in used:
            number += 1
        used.add(found)
        return found

    def indices(self, v: Value, used: set[Axis]) -> Indices:
        """An index for each dimension of a value, over axes of their own."""
        return tuple(self.over([self.axis(a, used) for a in dim]) for dim in self.axes.dims(v))

    def over(self, axes: Sequence[Axis]) -> Affine:
        """The index of a dimension whose atoms these axes run over."""
        strides = [prod(b.extent for b in axes[n + 1 :]) for n in range(len(axes))]
        return Affine(tuple(zip(axes, strides, strict=True)))

    def at(self, v: Value, at: Indices) -> Point:
        key = v, at
        if key not in self.pulled:
            self.pulled[key] = getattr(self, f"_{v.op}")(v, at)
        return self.pulled[key]

    def _operands(self, v: Value, at: Indices) -> tuple[Point, ...]:
        """The operands of an elementwise operation, where those of size 1 are repeated."""
        return tuple(self.at(x, shared(x, at)) for x in v.of)

    def _stored(self, v: Value, at: Indices) -> Point:
        return self._operands(v, at)[0]

    def _tensor(self, v: Value, at: Indices) -> Point:
        assert v.dtype is not None
        axes = axes_in(at)
        load = self.points.make("load", (), (v.args[0], at), v.dtype, v.dtype, v.span, axes)
        if v.dtype.whole or v.dtype == F32:
            return load
        return self.points.make("cast", (load,), (), F32, v.dtype, v.span)

    def _number(self, v: Value, at: Indices) -> Point:
        (x,) = v.args
        return self.points.make("number", (), (float(x) if isinstance(x, int) else x,), None, None, v.span)

    def _arange(self, v: Value, at: Indices) -> Point:
        return self.points.make("position", (), (at[0],), v.dtype, v.dtype, v.span, frozenset(at[0].axes))

    def _unary(self, v: Value, at: Indices) -> Point:
        return self.points.make("unary", self._operands(v, at), v.args, _computed(v.dtype), v.dtype, v.span)

    def _binary(self, v: Value, at: Indices) -> Point:
        x, y = self._operands(v, at)
        if v.args[0] in LINEAR and {x.op, y.op} <= {"position", "number"}:
            joined = positions(v.args[0], x, y)
            if joined is not None:
                return self.points.make("position", (), (joined,), v.dtype, v.dtype, v.span, frozenset(joined.axes))
        return self.points.make("binary", (x, y), v.args, _computed(v.dtype), v.dtype, v.span)

    def _compare(self, v: Value, at: Indices) -> Point:
        return self.points.make(v.op, self._operands(v, at), v.args, None, None, v.span)

    _logic = _compare

    def _where(self, v: Value, at: Indices) -> Point:
        return self.points.make("where", self._operands(v, at), (), _computed(v.dtype), v.dtype, v.span)

    def _cast(self, v: Value, at: Indices) -> Point:
        """Rounded to the type, and computed on in f32."""
        (x,) = self._operands(v, at)
        if v.dtype == F32 and x.dtype == F32:
            return self.points.make("cast", (x,), (), F32, F32, v.span)
        to = self.points.make("cast", (x,), (), v.dtype, v.dtype, v.span)
        return to if _computed(v.dtype) == v.dtype else self.points.make("cast", (to,), (), F32, v.dtype, v.span)

    def _reduce(self, v: Value, at: Indices) -> Point:
        op, along = v.args
        used = set(axes_in(at))
        bound: list[Axis] = []
        left, inner = iter(at), []
        for n, dim in enumerate(self.axes.dims(v.of[0])):
            if n not in along:
                inner.append(next(left))
                continue
            own = [self.axis(a, used) for a in dim]
            bound += own
            inner.append(self.over(own))
        x = self.at(v.of[0], tuple(inner))
        along = tuple(a for a in bound if a in x.axes)
        x = self._ended(x, [a for a in along if a in self.points.past_ends(x)], op, v)
        found = self.points.fold(op, along, x, v.dtype, v.span) if along else x
        times = prod(a.extent for a in bound if a not in x.axes)
        return self._repeated(found, times, v) if op == "sum" and times > 1 else found

    def _repeated(self, x: Point, times: int, v: Value) -> Point:
        """The sum of so many elements that are the same."""
        if x.op == "number" and isinstance(x.args[0], int | float):
            return self.points.make("number", (), (x.args[0] * times,), None, None, v.span)
        of = x, self.points.make("number", (), (float(times),), None, None, v.span)
        return self.points.make("binary", of, ("mul",), _computed(v.dtype) or F32, v.dtype, v.span)

    def _scan(self, v: Value, at: Indices) -> Point:
        op, along = v.args
        (x,), size = v.of, v.shape[along]
        if size == 1:
            return self.at(x, at)
        inner = self.at(x, at)
        whole = [a for a in at[along].axes if a.extent == size and at[along] == self.over([a])]
        if not whole:
            help = "make it an output of a kernel, and an input of another"
            message = f"`{op}` is computed whole, and in its order: no part of it alone, and in no other shape"
            raise TileError(message, v.span, help=help)
        if whole[0] not in inner.axes and op == "cumsum":
            place = at[along].plus(Affine(offset=1))
            count = self.points.make("position", (), (place,), I32, I32, v.span, frozenset(place.axes))
            return self.points.make("binary", (inner, count), ("mul",), F32, v.dtype, v.span)
        if whole[0] not in inner.axes:
            help = f"give what is added the axis: x * where(arange({size}) >= 0, 1.0, 0.0)"
            raise TileError(f"`{op}` goes along an axis of {size} on which all elements are the same", v.span, help=help)
        return self.points.make("scan", (inner,), (op, whole[0]), F32, v.dtype, v.span)

    def _matmul(self, v: Value, at: Indices) -> Point:
        a, b = v.of
        used = set(axes_in(at))
        bound = [self.axis(x, used) for x in self.axes.dims(a)[-1]]
        k, ends = self.over(bound), list(at)
        col = [ends.pop()] if len(b.shape) > 1 else []
        row = [ends.pop()] if len(a.shape) > 1 else []
        x = self.at(a, (*aligned(ends, a, 2), *row, k))
        y = self.at(b, (*aligned(ends, b, 2), k, *col))
        if not bound:
            return self.points.make("binary", (x, y), ("mul",), _computed(v.dtype), v.dtype, v.span)
        first = [k for k in bound if k in self.points.past_ends(x) and not self._ends(y, k)]
        second = [k for k in bound if k in self.points.past_ends(y) and k not in first and not self._ends(x, k)]
        return self.points.dot(tuple(bound), self._ended(x, first, "sum", v), self._ended(y, second, "sum", v), v)

    def _gather(self, v: Value, at: Indices) -> Point:
        axes, place, count = v.args
        lead, rest = at[place : place + count], iter((*at[:place], *at[place + count :]))
        found = [index_of(self.at(i, shared(i, lead)), i.span or v.span) for i in v.of[1:]]
        for n, index in zip(axes, found, strict=True):
            _check_inside(index, v.of[0].shape[n], v.span)
        picked = iter(found)
        return self.at(v.of[0], tuple(next(picked if n in axes else rest) for n in range(len(v.of[0].shape))))

    def _permute(self, v: Value, at: Indices) -> Point:
        inner: list[Affine] = [Affine()] * len(at)
        for place, axis in enumerate(v.args):
            inner[axis] = at[place]
        return self.at(v.of[0], tuple(inner))

    def _reshape(self, v: Value, at: Indices) -> Point:
        inner: list[Affine] = []
        for old, new, first in groups(v.of[0].shape, v.shape):
            inner += regrouped(old, new, at[first : first + len(new)], v.span)
        return self.at(v.of[0], tuple(inner))

    def _window(self, v: Value, at: Indices) -> Point:
        inner, left, shape = [], iter(at), iter(v.of[0].shape)
        for item in v.args:
            if item is None:
                next(left)
                continue
            (start, size, step), full = item, next(shape)
            index = Affine() if size is None else next(left)
            if size is not None and (size, step) != (full, 1) and any(reads((index,))):
                of = "idx" if abs(step) == 1 else f"idx * {abs(step)}"
                place = f"{of} + {start}" if step > 0 else f"{start} - {of}"
                help = f"take elements of the tensor itself, at indices plus where the window begins: x[{place}]"
                raise TileError("indices that are read pick elements of a window: its ends are not checked", v.span, help=help)
            inner.append(Affine(offset=start).plus(index, step))
        return self.at(v.of[0], tuple(inner))

    def _slide(self, v: Value, at: Indices) -> Point:
        (x,), inner = v.of, list(at[: len(v.of[0].shape)])
        for s, of in zip(v.args, at[len(inner) :], strict=True):
            inner[s.axis] = Affine(offset=-s.before).plus(inner[s.axis], s.step).plus(of, s.dilation)
        found, zeros = self.at(x, tuple(inner)), [s.axis for s in v.args if s.before or s.behind]
        if not zeros:
            return found
        found = self._past_ends(found, frozenset(a for n in zeros for a in inner[n].axes), {})
        return found if is_input(x) else self._inside(found, [(inner[n], x.shape[n]) for n in zeros], v)

    def _past_ends(self, p: Point, along: frozenset[Axis], known: dict[Point, Point]) -> Point:
        """A point whose loads may lie outside of their tensors along some axes, where they are 0."""
        if p in known:
            return known[p]
        args, of = p.args, tuple(self._past_ends(x, along, known) for x in p.of)
        if p.op == "load":
            if any(along & d.inside for d in args[1]):
                help = "make what the zeros lie around an output of one kernel, and an input of another"
                raise TileError("zeros do not lie around elements at indices that are read or divided", p.span, help=help)
            args = (*args[:2], tuple(n for n, d in enumerate(args[1]) if along.intersection(d.axes)))
        known[p] = self.points.make(p.op, of, args, p.dtype, p.rounds, p.span, p.axes)
        return known[p]

    def _inside(self, p: Point, ends: Sequence[tuple[Affine, int]], v: Value) -> Point:
        """A point where some indices are within 0 and their ends, else 0."""
        for index, end in ends:
            for op, n in (("ge", 0), ("lt", end)):
                p = self._where_place(p, index, op, n, 0.0, v)
        return p

    def _ends(self, p: Point, a: Axis) -> bool:
        """Whether an operand of a product is 0 beyond the end of an axis: elements of a tensor that ends there."""
        return p.op == "load" and a not in self.points.past_ends(p)

    def _ended(self, p: Point, along: Sequence[Axis], op: str, v: Value) -> Point:
        """What a fold takes: beyond the end of these axes that which takes no part in it."""
        for a in along:
            p = self._where_place(p, self.over([a]), "lt", a.extent, neutral(op, p.dtype or F32), v)
        return p

    def _where_place(self, p: Point, index: Affine, op: str, n: int, other: float, v: Value) -> Point:
        number = lambda n: self.points.make("number", (), (float(n),), None, None, v.span)  # noqa: E731
        place = self.points.make("position", (), (index,), I32, I32, v.span, frozenset(index.axes))
        condition = self.points.make("compare", (place, number(n)), (op,), None, None, v.span)
        return self.points.make("where", (condition, p, number(other)), (), p.dtype, p.rounds, v.span)


def goes_across(span: Span | None) -> TileError:
    """What is said where elements at quotients and rests of positions, as a window across axes has them, are not taken."""
    help = "take the window of the tensor before it is reshaped"
    return TileError("a window goes across axes that a reshape made one", span, help=help)


def _check_inside(index: Affine, size: int, span: Span | None) -> None:
    """TileError where an index of which nothing is read leaves its axis."""
    if any(reads((index,))):
        return
    low, high = extent_of(index)
    if low < 0 or high >= size:
        help = "none counts from the end, and of neighbours a slice is taken: x[:-1]"
        raise TileError(f"an index goes from {low} to {high}, of an axis of {size}", span, help=help)


def index_of(p: Point, span: Span | None) -> Affine:
    """A point where an index stands. TileError where it has to be computed."""
    found = _index(p)
    if found is None:
        help = "make the index an output of one kernel and an input of another, or write the kernel with its tiles"
        message = "an index is read from an input, as it is or plus, times, // or % a number: this one is computed"
        raise TileError(message, p.span or span, help=help)
    return found


def _index(p: Point) -> Affine | None:
    if p.op in ("number", "position"):
        return linear(p)
    if p.op == "load":
        return Affine(((Element("read", p.args[1], p.args[0]), 1),)) if p.dtype == I32 else None
    if p.op == "cast":
        return _index(p.of[0]) if p.dtype == I32 and p.of[0].dtype == I32 else None
    if p.op != "binary":
        return None
    x, y = map(_index, p.of)
    return None if x is None or y is None else joined(p.args[0], x, y)


def linear(p: Point) -> Affine | None:
    """A position or a whole number."""
    if p.op == "position":
        return p.args[0]  # type: ignore[no-any-return]
    return Affine(offset=int(p.args[0])) if float(p.args[0]).is_integer() else None


def joined(op: str, x: Affine, y: Affine) -> Affine | None:
    """Arithmetic of indices; None where it is no sum of multiples, and no whole quotient or rest of a positive number."""
    if op == "mul":
        x, y = (y, x) if not x.terms else (x, y)
        return None if y.terms else Affine().plus(x, y.offset)
    if op in DIVIDES and not y.terms and y.offset > 0:
        return Affine(((Element(DIVIDES[op], (x,), y.offset), 1),))
    return x.plus(y, -1 if op == "sub" else 1) if op in ("add", "sub") else None


def positions(op: str, x: Point, y: Point) -> Affine | None:
    """Arithmetic of positions that is linear."""
    a, b = linear(x), linear(y)
    return None if a is None or b is None else joined(op, a, b)
