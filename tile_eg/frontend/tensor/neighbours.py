"""Axes that lie side by side wherever they are become one, and tensors are indexed in the shapes that this gives them.

Images [N, C, H, W] whose rows and columns no one tells apart are runs of H W elements: long rows of tiles, where W alone may be
short. Two axes are one where every index that has one of them has both, the outer one as many elements apart as the inner
one is long. Indices are those of elements in a row here; a dimension begins at each `mark`, a number of elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod

from tile_eg.frontend.tensor.algebra import axes_of
from tile_eg.frontend.tensor.axes import Atom
from tile_eg.frontend.tensor.indices import Affine, Axis, Element, Indices, axes_in, diagonal, divided, reads
from tile_eg.frontend.tensor.points import Point, Points
from tile_eg.frontend.tensor.roles import Output
from tile_eg.frontend.tensor.steps import farthest

Shapes = Mapping[str, tuple[int, ...]]
Pair = tuple[Axis, Axis]
"""The outer axis and the inner one."""


class Neighbours:
    """Which axes become one, in outputs made of `every` point, and where the dimensions of tensors begin then."""

    def __init__(self, outputs: Sequence[Output], every: Sequence[Point], shapes: Shapes) -> None:
        self.every, self.shapes, self.banned = every, shapes, set[Pair]()
        self.stored = {o.tensor.name for o in outputs}
        self.one_by_one = {a for p in every if p.op == "dot" for a in p.args[:-1]}
        self.between_zeros = {p.args[0]: axes_in(p.args[1]) for p in every if p.op == "load" and len(p.args) > 2}
        own = [*((o.tensor.name, o.at) for o in outputs), *(p.args[:2] for p in every if p.op == "load")]
        places = [p.args for p in every if p.op == "position"]
        inner = [(str(e.by), e.of) for at in (*(at for _, at in own), *places) for e in reads(at)]
        self.accesses = [(name, at, in_a_row(at, shapes[name])) for name, at in (*own, *inner)]
        alone = [d for at in (*(at for _, at in own), *places) for d in divided(at)]
        self.indices = [*(row for _, _, row in self.accesses), *alone, *(d for at in places for d in at)]
        while torn := {pair for name in shapes for pair in self._torn(name)}:
            self.banned |= torn
            del self.inner

    @cached_property
    def inner(self) -> dict[Axis, Axis]:
        """The inner one of the two that become one, by the outer one."""
        out: dict[Axis, Axis] = {}
        for a, b in (pair for d in self.indices for pair in side_by_side(d)):
            if (a, b) not in self.banned and a not in out and b not in out.values() and self._one((a, b)):
                out[a] = b
        return out

    def _one(self, pair: Pair) -> bool:
        """Whether no index and no sum has one of a pair alone."""
        both = {*pair}
        if any(both & {*d.inside} or not _both_or_none(d, pair) for d in self.indices):
            return False
        if any(both & diagonal(at) for _, at, _ in self.accesses) or any(both & at for at in self.between_zeros.values()):
            return False
        bound = [axes_of(p) if p.op != "scan" else p.args[1:] for p in self.every if p.op in ("fold", "dot", "scan")]
        return all(len(both & {*b}) in (0, 2) for b in bound)

    def runs(self) -> dict[Axis, tuple[Axis, ...]]:
        """The axes that become one, outermost first, by the innermost of them."""
        out = {}
        for a in [a for a in self.inner if a not in self.inner.values()]:
            run = [a]
            while run[-1] in self.inner:
                run.append(self.inner[run[-1]])
            out[run[-1]] = tuple(run)
        return out

    # ---- dimensions ----

    def marks(self, name: str) -> list[int]:
        """Where the dimensions of a tensor begin, the innermost first: where a joined axis ends, and not inside of it. Each is a
        multiple of the one before, so that dimensions have whole numbers of elements."""
        every = prod(self.shapes[name])
        found = [m for m in marks_of(self.shapes[name]) if m not in self._inside(name)]
        for m in sorted({end for _, end in self._runs_of(name)} - {every, *found}):
            whole = all(max(m, other) % min(m, other) == 0 for other in (*found, every))
            if whole and all(_parts(d, m) for n, _, d in self.accesses if n == name):
                found.append(m)
        step = self._step(name)
        return sorted(found) if step not in found else [1, *sorted(m for m in found if m > step)]

    def seen_otherwise(self, name: str) -> bool:
        """Whether a tensor may have other dimensions than its own."""
        return name not in self.between_zeros and (bool(self.inner) or self._step(name) > 1)

    def _step(self, name: str) -> int:
        """The elements of a tensor's innermost dimensions, where of these single ones are taken: with the dimension around them
        they are one, through which an axis goes in steps. 1 where there are none such."""
        rows = [d for n, _, d in self.accesses if n == name]
        if name in self.stored or any(d.elements for d in rows):
            return 1
        step = min((abs(s) for d in rows for a, s in d.strides.items() if a not in self.one_by_one), default=1)
        return step if step <= max((farthest(d, step) for d in rows), default=1) else 1

    def _runs_of(self, name: str) -> Iterator[tuple[int, int]]:
        """Where axes that are several begin and end in a tensor."""
        for d in (d for n, _, d in self.accesses if n == name):
            for a, run in self.runs().items():
                if a in d.strides:
                    yield abs(d.strides[a]), abs(d.strides[a]) * prod(x.extent for x in run)

    def _inside(self, name: str) -> set[int]:
        """The marks of a tensor's dimensions that lie inside of axes that are several."""
        return {m for m in marks_of(self.shapes[name]) for first, end in self._runs_of(name) if first < m < end}

    def _torn(self, name: str) -> Iterator[Pair]:
        """The pairs without whose mark a dimension of others is none."""
        for m in self._inside(name):
            rows = [d for n, _, d in self.accesses if n == name]
            outside = [a for d in rows for a, s in d.terms if abs(s) == m and a not in self.inner]
            if any(a not in self.inner.values() for a in outside):
                yield from ((a, b) for a, b in self.inner.items() for d in rows if abs(d.strides.get(a, 0)) == m)


def in_a_row(at: Indices, shape: tuple[int, ...]) -> Affine:
    """The index of an element among all of its tensor."""
    out = Affine()
    for n, d in enumerate(at):
        out = out.plus(d, prod(shape[n + 1 :]))
    return out


def marks_of(shape: tuple[int, ...]) -> list[int]:
    """Where the dimensions of a shape begin, the innermost first; those of one element are none."""
    found = dict.fromkeys(prod(shape[n + 1 :]) for n in reversed(range(len(shape))) if shape[n] != 1)
    return list(found) or [1]


def side_by_side(d: Affine) -> Iterator[Pair]:
    """The pairs of axes in an index of which the outer one goes on where the inner one ends."""
    yield from ((a, b) for a, s in d.strides.items() for b, t in d.strides.items() if a is not b and s == t * b.extent)


def _both_or_none(d: Affine, pair: Pair) -> bool:
    a, b = (d.strides.get(x) for x in pair)
    return a is b is None or (a is not None and b is not None and a == b * pair[1].extent)


def _parts(d: Affine, mark: int) -> bool:
    """Whether an index has a part below a mark, and another one of multiples of it."""
    below = [(a, s) for a, s in d.terms if s % mark]
    ends = [(a.extent - 1) * s for a, s in below if isinstance(a, Axis)]
    least, most = (d.offset % mark + sum(pick(e, 0) for e in ends) for pick in (min, max))
    return len(ends) == len(below) and 0 <= least <= most < mark


class Joined:
    """The outputs with neighbours joined, and the shapes in which they index tensors: `seen`."""

    def __init__(self, outputs: Sequence[Output], every: Sequence[Point], points: Points, shapes: Shapes) -> None:
        found = Neighbours(outputs, every, shapes)
        runs = found.runs()
        self.points, self.shapes, self.made = points, shapes, dict[Point, Point]()
        self.seen = {n: _shape(found.marks(n), shape) if found.seen_otherwise(n) else shape for n, shape in shapes.items()}
        self.one = {a: Axis(Atom(prod(x.extent for x in run)), 0, run[0].serial) for a, run in runs.items()}
        self.gone = {a for run in runs.values() for a in run[:-1]}
        self.outputs = [replace(o, at=self._at(o.tensor.name, o.at), value=self.point(o.value)) for o in outputs]

    def _at(self, name: str, at: Indices) -> Indices:
        if self.seen[name] == self.shapes[name]:
            return tuple(map(self._index, at))
        row = self._index(in_a_row(at, self.shapes[name]))
        return parted(row, self.seen[name])

    def _index(self, d: Affine) -> Affine:
        return Affine(tuple((self._term(a), s) for a, s in d.terms if a not in self.gone), d.offset)

    def _term(self, t: Axis | Element) -> Axis | Element:
        if isinstance(t, Axis):
            return self.one.get(t, t)
        return Element(t.op, self._at(str(t.by), t.of) if t.op == "read" else tuple(map(self._index, t.of)), t.by)

    def point(self, p: Point) -> Point:
        if p not in self.made:
            self.made[p] = self._point(p)
        return self.made[p]

    def _point(self, p: Point) -> Point:
        of, args = tuple(map(self.point, p.of)), p.args
        axes: frozenset[Axis] | None = None
        match p.op:
            case "load":
                args = args[0], self._at(*args[:2]), *args[2:]
                axes = axes_in(args[1])
            case "position":
                args = (self._index(args[0]),)
                axes = frozenset(args[0].axes)
            case "fold" | "dot":
                bound = self._axes(axes_of(p))
                args = bound if p.op == "dot" else (args[0], bound)
                axes = frozenset[Axis]().union(*(x.axes for x in of)) - {*bound}
            case "scan":
                args = args[0], *self._axes(args[1:])
        return self.points.make(p.op, of, args, p.dtype, p.rounds, p.span, axes)

    def _axes(self, axes: Iterable[Axis]) -> tuple[Axis, ...]:
        return tuple(self.one.get(a, a) for a in axes if a not in self.gone)


def _shape(marks: Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which dimensions begin at some marks; the given one where it has no others."""
    ends = (*marks[1:], prod(shape))
    found = tuple(end // mark for mark, end in reversed([*zip(marks, ends, strict=True)]))
    return shape if found == tuple(n for n in shape if n != 1) else found


def parted(row: Affine, shape: tuple[int, ...]) -> Indices:
    """The index of each dimension, of that of an element among all of them."""
    out, offset = [], row.offset
    for n, size in enumerate(shape):
        mark = prod(shape[n + 1 :])
        own = [(a, s) for a, s in row.terms if s % mark == 0 and abs(s) < mark * size]
        out.append(Affine(tuple((a, s // mark) for a, s in own), offset // mark))
        offset %= mark
        row = Affine(tuple(t for t in row.terms if t not in own))
    return tuple(out)
