"""Where tiles lie in their tensors: the sizes of tiles, the grid, and the variables of the loops that are open."""

from __future__ import annotations

from collections.abc import Mapping

from tile_eg.frontend.tensor.algebra import Algebra, axes_of
from tile_eg.frontend.tensor.indices import Affine, Axis, expression
from tile_eg.frontend.tensor.points import Point
from tile_eg.frontend.tensor.roles import Roles
from tile_eg.ir import index as ix


class Places:
    """`sizes` are those of the open axes by their names, `names` the names that are taken.

    `tile` has the size of the tiles of each tiled axis, `at` where an axis is by now: where its tile starts, or its index.
    """

    def __init__(self, roles: Roles, algebra: Algebra, sizes: Mapping[str, int], names: set[str]) -> None:
        self.roles, self.algebra, self.points = roles, algebra, algebra.points
        self.taken = set(names)
        self.tile = {a: self._size(a, sizes) for a in roles.tiled}
        self.at: dict[Axis, ix.Expr] = dict.fromkeys(roles.tiled, ix.ZERO)
        self.grid = tuple(self._outer(a) for a in roles.outer)
        self.ranges = {name: (0, extent - 1) for name, extent in self.grid}

    def _size(self, axis: Axis, sizes: Mapping[str, int]) -> int:
        if axis in self.roles.whole:
            return axis.extent
        name = self.roles.open[axis]
        if axis not in self.roles.exact:
            return sizes[name]
        return max(n for n in range(1, min(sizes[name], axis.extent) + 1) if axis.extent % n == 0)

    def _outer(self, axis: Axis) -> tuple[str, int]:
        """A variable of the grid and its extent."""
        rows = [a for a in self.roles.outer if a in self.tile]
        name = self.unique(("bx", "by")[rows.index(axis)] if axis in rows else "b")
        self.at[axis] = ix.var(name) * self.tile.get(axis, 1)
        return name, -(-axis.extent // self.tile.get(axis, 1))

    def unique(self, name: str) -> str:
        found, n = name, 0
        while found in self.taken:
            n += 1
            found = f"{name}_{n}"
        self.taken.add(found)
        return found

    def looped(self, p: Point) -> tuple[Axis, ...]:
        """The axes of a fold that loops go over."""
        return tuple(a for a in axes_of(p) if self.trips(a) > 1)

    def trips(self, a: Axis) -> int:
        return -(-a.extent // self.tile.get(a, 1))

    def place(self, d: Affine) -> ix.Expr:
        return expression(d, lambda a: self.at[a], self.roles.shapes)
