"""Equalities of sums that let one loop do what is written as several.

A factor that is the same along the axis of a sum stands outside of it: sum(e / l) is sum(e) / l. Where such a factor is itself a
statistic of the axis, the sum then needs no loop behind that of the statistic. And a sum of exponentials less a running maximum
is kept right by a factor when the maximum grows (Milakov and Gimelshein, Online normalizer calculation for softmax): `running`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_eg.frontend.tensor.indices import Axis
from tile_eg.frontend.tensor.points import Point, Points
from tile_eg.ops.types import F32

Factor = tuple[Point, bool]
"""A factor, and whether it divides."""


class Algebra:
    """Rewrites points by the equalities."""

    def __init__(self, points: Points) -> None:
        self.points = points
        self.done: dict[Point, Point] = {}

    def simplified(self, p: Point) -> Point:
        if p not in self.done:
            of = tuple(map(self.simplified, p.of))
            axes = p.axes if not of or p.op in ("fold", "dot") else None
            again = self.points.make(p.op, of, p.args, p.dtype, p.rounds, p.span, axes)
            self.done[p] = self._sum(again) if again.op == "dot" or is_sum(again) else again
        return self.done[p]

    def _sum(self, p: Point) -> Point:
        if p.op == "dot" and not self._of_cubes(p):
            return self._sum(self.as_sum(p))
        if p.op == "fold" and self._written_out(p):
            x, y = p.of[0].of
            return self._sum(self.points.dot(p.args[1], x, y, p))
        axes = axes_of(p)
        outside: list[Factor] = []
        inside = []
        for x in p.of:
            taken, left = self._parted(x, axes)
            outside += taken
            inside.append(left)
        if not outside:
            return p
        found = self.points.make(p.op, tuple(inside), p.args, p.dtype, p.rounds, p.span, p.axes)
        for factor, divides in outside:
            found = self.points.binary("div" if divides else "mul", found, factor, p)
        return found

    def as_sum(self, p: Point) -> Point:
        """A product of matrices as the sum of the products of its elements."""
        x, y = (self._widened(x, p) for x in p.of)
        return self.points.fold("sum", p.args, self.points.binary("mul", x, y, p), p.rounds, p.span)

    def _of_cubes(self, p: Point) -> bool:
        """Whether the cube cores do a product: of two matrices, or of a vector and a matrix that are no floats of 32 bits."""
        x, y = (x.axes - set(p.args) for x in p.of)
        return bool(x - y and y - x) or (bool(x ^ y) and p.rounds not in (None, F32))

    def _written_out(self, p: Point) -> bool:
        """Whether a sum of floats is a product of matrices written out, or of a vector and a matrix for each index of an axis."""
        (x,), axes = p.of, set(axes_of(p))
        if x.op != "binary" or x.args != ("mul",) or p.rounds is None or p.rounds.whole:
            return False
        if not all(loaded(f) and f.rounds == p.rounds and axes <= f.axes for f in x.of):
            return False
        if any(_beside_others(axes_of(p)[-1], f) for f in x.of):
            return False
        a, b = (f.axes - axes for f in x.of)
        return bool(a - b and b - a) or (bool(a & b and a ^ b) and p.rounds != F32)

    def _widened(self, x: Point, p: Point) -> Point:
        """A factor of a product of whole numbers in the type of the product."""
        whole = p.dtype is not None and p.dtype.whole and x.dtype != p.dtype
        return self.points.make("cast", (x,), (), p.dtype, p.dtype, x.span) if whole else x

    def _parted(self, x: Point, axes: tuple[Axis, ...]) -> tuple[list[Factor], Point]:
        """The factors to stand outside of a sum over the axes, and what is left of x: one that is no larger than it was."""
        found = list(factors(x))
        taken = [f for f in found if not f[0].axes & set(axes) and self._statistic(f[0], axes)]
        left = [f for f in found if f not in taken]
        if taken and len(left) == 1 and not left[0][1] and left[0][0].dtype == x.dtype:
            (rest, _), *_ = left
            if loaded(rest) or self.maximum_below(rest, axes):
                return taken, rest
        return [], x

    def _statistic(self, p: Point, axes: tuple[Axis, ...]) -> bool:
        return any(set(axes_of(f)) & set(axes) for f in self.points.folds(p))

    def maximum_below(self, p: Point, axes: tuple[Axis, ...]) -> Point | None:
        """m in exp(x - m), where m is the maximum of x over the axes."""
        if p.op != "unary" or p.args != ("exp",) or p.of[0].op != "binary" or p.of[0].args != ("sub",):
            return None
        x, m = p.of[0].of
        return m if m.op == "fold" and m.args == ("max", axes) and m.of[0] is x and m.dtype == F32 else None

    def running(self, p: Point) -> Point | None:
        """The maximum with which a sum over the same axes can run along, as one factor below it is exp(x - m)."""
        if not (p.op == "dot" or is_sum(p)):
            return None
        axes = axes_of(p)
        below = [f for x in p.of for f in factors(x)]
        found = [(f, m) for f, divides in below if not divides and (m := self.maximum_below(f, axes))]
        if len(found) != 1:
            return None
        factor, m = found[0]
        others = [f for f, _ in below if f is not factor]
        if any(m in self.points.folds(f) for f in (*others, factor.of[0].of[0])):
            return None
        return m


def factors(p: Point) -> Iterator[Factor]:
    """The factors of a product or quotient."""
    if p.op == "binary" and p.args in (("mul",), ("div",)):
        yield from factors(p.of[0])
        yield from ((f, divides != (p.args == ("div",))) for f, divides in factors(p.of[1]))
    else:
        yield p, False


def axes_of(p: Point) -> tuple[Axis, ...]:
    """What a fold or a dot binds."""
    return p.args if p.op == "dot" else p.args[1]


def is_sum(p: Point) -> bool:
    return p.op == "fold" and p.args[0] == "sum"


def _beside_others(depth: Axis, p: Point) -> bool:
    """Whether an axis and others go along one dimension of a tensor, as the elements of a window and its places do."""
    load = p if p.op == "load" else p.of[0]
    return any(depth in d.strides and len(d.strides) > 1 for d in load.args[1])


def loaded(p: Point) -> bool:
    """Whether a point is an element of a tensor, in whichever type it is computed."""
    return p.op == "load" or (p.op == "cast" and p.of[0].op == "load")
