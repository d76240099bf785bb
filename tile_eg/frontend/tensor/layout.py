"""In which order the axes of a point lie in a tile: rows, then columns."""

from __future__ import annotations

from collections import Counter

from tile_eg.frontend.tensor.indices import Axis, Indices
from tile_eg.frontend.tensor.points import Point
from tile_eg.frontend.tensor.roles import Roles

Layout = tuple[Axis, ...]


class Layouts:
    """Layouts of the points of an expression; `uses` counts who reads a point."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.tiles = frozenset(roles.tiled)
        self.known: dict[Point, Layout] = {}
        self.uses = Counter(x for p in roles.points for x in p.of)
        self.order: list[Axis] = [a for o in roles.outputs for d in o.at for a in d.axes]

    def of(self, p: Point) -> Layout:
        """As a tensor or a product has them; what several have is as the first of them has it."""
        if p not in self.known:
            found = self._found(p)
            missing = [a for a in self._in_order(p) if a not in found]
            self.known[p] = (*found, *missing) if found else tuple(missing)
        return self.known[p]

    def _found(self, p: Point) -> Layout:
        if p.op == "load":
            return self.of_indices(p.args[1])
        if p.op == "dot":
            a, b = (self._free(x, p) for x in p.of)
            turned = bool(a and b) and [x for x in self.order if x in (a[0], b[0])] == [b[0], a[0]]
            return (*b, *a) if turned else (*a, *b)
        own = p.axes & self.tiles
        layouts = [tuple(a for a in self.of(x) if a in own) for x in p.of]
        return max(layouts, key=len, default=())

    def _free(self, x: Point, dot: Point) -> Layout:
        return tuple(a for a in self.of(x) if a in dot.axes)

    def _in_order(self, p: Point) -> list[Axis]:
        own = p.axes & self.tiles
        return sorted(own, key=lambda a: (self.order.index(a) if a in self.order else len(self.order), a.serial))

    def of_indices(self, at: Indices) -> Layout:
        return tuple(dict.fromkeys(a for d in at for a in d.every if a in self.tiles))
