"""What the result of an instruction stands for: a value of the kernel, in trips of its loops, of a tile of the grid."""

from __future__ import annotations

from collections.abc import Callable

from tile_eg.ir.index import BLOCK, Expr, var
from tile_eg.ir.values import Term
from tile_eg.ops.records import record


@record
class Held:
    """An instruction's result holds `term`; None: a store. `trips` are the loops' variables in it with the trips that it is of.

    `tile` is which of the grid's. `share`: a vector core writes its half of it, along that axis (None: the whole).
    """

    term: Term | None
    trips: tuple[tuple[str, Expr], ...] = ()
    tile: Expr = var(BLOCK)
    share: int | None = None

    def changed(self, change: Callable[[Expr], Expr]) -> Held:
        """The same with its index expressions changed."""
        trips = tuple((name, change(trip)) for name, trip in self.trips)
        return Held(self.term, trips, change(self.tile), self.share)
