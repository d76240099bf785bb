"""Which folds wait for which, and which can be made in one loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_eg.frontend.tensor.algebra import Algebra
from tile_eg.frontend.tensor.indices import Axis
from tile_eg.frontend.tensor.points import Point


class Waits:
    """How many loops of its scope have to be over before a point is there."""

    def __init__(self, looped: Callable[[Point], tuple[Axis, ...]], algebra: Algebra) -> None:
        self.looped, self.algebra = looped, algebra
        self.known: dict[Point, int] = {}

    def of(self, p: Point) -> int:
        if p not in self.known:
            own = 1 + self.round(p) if p.op in ("fold", "dot") and self.looped(p) else 0
            self.known[p] = max([own, *map(self.of, p.of)])
        return self.known[p]

    def round(self, p: Point) -> int:
        """How many loops are over when that of a fold begins; the maximum that it runs along with is made in the same."""
        greatest = self.algebra.running(p)
        if greatest is None or self.looped(greatest) != self.looped(p):
            return max(map(self.of, p.of), default=0)
        return max(self.round(greatest), *(self._without(x, greatest) for x in p.of))

    def _without(self, p: Point, greatest: Point) -> int:
        """The loops that a point waits for beside that of the maximum."""
        if p is greatest:
            return self.round(greatest)
        own = 1 + self.round(p) if p.op in ("fold", "dot") and self.looped(p) else 0
        return max([own, *(self._without(x, greatest) for x in p.of)])

    def together(self, p: Point, roots: Sequence[Point], home: Callable[[Point], Any]) -> list[Point]:
        """The folds of a loop: those of p's scope over the same axes that begin when p does."""
        alike = (self.looped(p), self.round(p), home(p))
        found = [f for f in self.algebra.points.folds_in_order(roots) if f is not p and self.looped(f)]
        return [p, *(f for f in found if (self.looped(f), self.round(f), home(f)) == alike)]
