"""Where an element of a tensor lies: axes, and the indices that are computed of them and of what tensors hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from math import prod

from tile_eg.frontend.ranges import extremes
from tile_eg.frontend.tensor.axes import Atom
from tile_eg.frontend.tensor.values import Value
from tile_eg.ir import index as ix
from tile_eg.ir.index_elements import element
from tile_eg.ops.records import record


@record(eq=False)
class Axis:
    """`atom` is the dimension that it runs over, `number` tells apart axes over one dimension that are needed side by side.

    `serial` is its place among all axes, in the order in which they are met.
    """

    atom: Atom
    number: int
    serial: int

    @property
    def extent(self) -> int:
        return self.atom.extent


@record
class Element:
    """A whole number that no sum of axes gives. `op` is read, an element of the tensor `by` at the indices `of`; or div or mod,
    the one index `of` by the number `by`.
    """

    op: str
    of: tuple[Affine, ...]
    by: str | int


@record
class Affine:
    """A sum of axes and of elements that are read, each times its stride, and an offset."""

    terms: tuple[tuple[Axis | Element, int], ...] = ()
    offset: int = 0

    @cached_property
    def strides(self) -> dict[Axis, int]:
        """Of the axes that it is a sum of."""
        return {a: s for a, s in self.terms if isinstance(a, Axis)}

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(self.strides)

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        return tuple(a for a, _ in self.terms if isinstance(a, Element))

    @cached_property
    def inside(self) -> frozenset[Axis]:
        """The axes that decide which elements are read."""
        return frozenset(a for e in self.elements for d in e.of for a in d.every)

    @cached_property
    def every(self) -> tuple[Axis, ...]:
        """The axes that it depends on, in the order in which they stand."""
        below = (a for t, _ in self.terms for a in ([t] if isinstance(t, Axis) else [a for d in t.of for a in d.every]))
        return tuple(dict.fromkeys(below))

    @property
    def most(self) -> int:
        """Without what is read."""
        return self.offset + sum((a.extent - 1) * s for a, s in self.strides.items())

    def plus(self, other: Affine, times: int = 1) -> Affine:
        terms = dict(self.terms)
        for a, s in other.terms:
            terms[a] = terms.get(a, 0) + s * times
        return Affine(tuple((a, s) for a, s in terms.items() if s), self.offset + times * other.offset)


Indices = tuple[Affine, ...]


def reads(at: Indices) -> Iterator[Element]:
    """The elements of tensors that some indices are made of, and those of which their places are."""
    for e in (e for d in at for e in d.elements):
        if e.op == "read":
            yield e
        yield from reads(e.of)


def divided(at: Indices) -> Iterator[Affine]:
    """The indices that are divided on the way to some."""
    for e in (e for d in at for e in d.elements):
        if e.op != "read":
            yield e.of[0]
        yield from divided(e.of)


def loadable(at: Indices, tiled: Collection[Axis]) -> bool:
    """Whether one load brings a tile: what is read of one row along its columns is a vector."""
    mine = axes_in(at) & set(tiled)
    return len(mine) < 2 or not mine & at[-1].inside


def diagonal(at: Indices) -> frozenset[Axis]:
    """The axes that go along two dimensions at once."""
    return frozenset(a for a in axes_in(at) if sum(a in d.strides for d in at) > 1)


def axes_in(at: Indices) -> frozenset[Axis]:
    return frozenset(a for d in at for a in d.every)


def unflattened(index: Affine, size: int, stride: int, shape: tuple[int, ...]) -> Indices:
    """An index below `size`, so many elements apart, as one of each dimension of a shape: of those that it goes across, whole
    quotients and rests."""
    out = [Affine() for _ in shape]
    for n in reversed(range(len(shape))):
        inner = prod(shape[n + 1 :])
        room = inner * shape[n] // stride
        if room <= 1 or size <= 1:
            continue
        part = index if size <= room else Affine(((Element("mod", (index,), room), 1),))
        out[n] = Affine().plus(part, stride // inner)
        index, size, stride = Affine(((Element("div", (index,), room), 1),)), size // room, stride * room
    return tuple(out)


def extent_of(d: Affine) -> ix.Interval:
    """The least and the greatest value of an index of which nothing is read."""
    names = {a: f"a{n}" for n, a in enumerate(d.every)}
    return extremes(expression(d, lambda a: ix.var(names[a]), {}), {name: (0, a.extent - 1) for a, name in names.items()})


def expression(d: Affine, place: Callable[[Axis], ix.Expr], shapes: Mapping[str, tuple[int, ...]]) -> ix.Expr:
    """An index, where `place` says where the axes are; what is read is an element of a tensor of one of these shapes."""
    terms = (s * (place(t) if isinstance(t, Axis) else _element(t, place, shapes)) for t, s in d.terms)
    return sum(terms, ix.const(d.offset))


def _element(e: Element, place: Callable[[Axis], ix.Expr], shapes: Mapping[str, tuple[int, ...]]) -> ix.Expr:
    at = [expression(d, place, shapes) for d in e.of]
    if isinstance(e.by, int):
        return (ix.div if e.op == "div" else ix.mod)(at[0], ix.const(e.by))
    return element(e.by, shapes[e.by], at)


def shared(x: Value, at: Indices) -> Indices:
    """The indices of an operand that is repeated along axes that it has not, or of which it has one element."""
    own = at[len(at) - len(x.shape) :]
    return tuple(Affine() if n == 1 else i for n, i in zip(x.shape, own, strict=True))


def aligned(lead: list[Affine], x: Value, ends: int) -> list[Affine]:
    """The leading indices of an operand of a product."""
    shape = x.shape[:-ends] if len(x.shape) > ends else ()
    own = lead[len(lead) - len(shape) :]
    return [Affine() if n == 1 else i for n, i in zip(shape, own, strict=True)]
