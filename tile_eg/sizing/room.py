"""The bytes that each level has to hold for a kernel's values, without a schedule: loads lie in rings, other values as long as
they are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tile_eg.ir.index import BLOCK, variables
from tile_eg.ir.values import VERSIONS, WRITES, Term, Values
from tile_eg.ops.types import F32
from tile_eg.sizing.anatomy import COMPUTED, Anatomy, source

IN_PLACE = ("unary", "binary", "nest")  # an operand that ends there gives its place


class Room:
    """Of one block, on whose tiles `shares` vector cores work; `stays` are the loads that find their tiles in UB, each with the
    load that left them there."""

    def __init__(self, values: Values, anatomy: Anatomy, shares: int, stays: Mapping[Term, Term]) -> None:
        self.values, self.a, self.shares, self.stays = values, anatomy, shares, stays

    def l1(self, factor: dict[int, int]) -> int:
        operands = {x for t in self.a.terms if t.op == "matmul" for x in self.a.operands(t)}
        return sum(_bytes(x) * (self.slots(x) if self.a.region(x) else 1) * factor.get(self.a.region(x), 1) for x in operands)

    def slots(self, t: Term) -> int:
        """How many slots hold what is loaded: two, or as many as the author of its loop gave; one a trip where it stays."""
        if t in self.stays.values():
            return self.values.trips[self.a.region(t)]
        return 0 if t in self.stays else self.values.stages.get(self.a.region(t), 2)

    def l0c(self) -> int:
        """Sums of products lie there through their loop, single products for a while."""
        sums = {t for t in self.a.cube if t.op == "arg"}
        single = [t for t in self.a.cube if t.op == "matmul" and not any(u in self.a.cube for u in self.a.users[t])]
        return sum(map(_bytes, sums)) + sum(map(_bytes, single))

    def ub(self, twice: bool = False) -> int:
        """The most that the vector cores' values take at a time, in the order in which they are made, beside the rings.

        Rings hold what is loaded in a loop, while that runs; with `twice` all that varies with the block and is loaded or stored.
        """
        order = [t for t in reversed(self.a.terms) if self._in_ub(t)]
        if self.stays:  # one loop behind the other: the tiles of the first one's trips are all there by then
            order.sort(key=self.a.region)
        at = {t: i for i, t in enumerate(order)}
        last = {t: max((at[u] for u in self._readers(t) if u in at), default=-1) for t in order}
        stored = {source(t.args[3]) for t in self.a.terms if t.op in WRITES} if twice else set()
        live, ends = 0, defaultdict[int, int](int)
        rings, peaks = defaultdict[int, int](int), defaultdict[int, int](int)
        for i, t in enumerate(order):
            size, done, loop = -(-_packed(t) // self.shares), ends.pop(i, 0), self._outermost(t)
            loaded = t.op == "load" and (loop or (twice and BLOCK in variables(t.args[1])))
            if t in stored or t.op == "panel" or loaded:
                rings[0 if t in self.stays.values() else loop] += (2 if t in stored else self.slots(t)) * size
                size = 0
            live += size - (done if t.op in IN_PLACE else 0)
            peaks[loop] = max(peaks[loop], live)
            live -= 0 if t.op in IN_PLACE else done
            if t.op != "arg":
                ends[max(last[t], i + 1)] += size
        around = rings.pop(0, 0)
        return around + max((peaks[loop] + rings[loop] for loop in {*peaks, *rings}), default=0)

    def _outermost(self, t: Term) -> int:
        """The loop around a term that stands in no other; 0 where none is."""
        loop = self.a.region(t)
        while loop and self.values.parents[loop]:
            loop = self.values.parents[loop]
        return loop

    def _readers(self, t: Term) -> list[Term]:
        """Who reads a value, itself or broadcast."""
        return [u for x in self.a.users[t] for u in (self._readers(x) if x.op == "bcast" else [x])]

    def _in_ub(self, t: Term) -> bool:
        if t in self.a.cube or t.op in VERSIONS or not t.rows or t.op in ("bcast", "fill", "proj"):
            return False
        if t.op == "panel":
            return True
        if t.op == "load":
            return any(u.op != "matmul" for u in self.a.users[t])
        return t.op == "arg" or (t.op in COMPUTED and not self.a.on_the_way_out(t))


def _bytes(t: Term) -> int:
    """Bytes of a tile with its rows in whole fractals."""
    return _packed(t) if t.rows == 1 else _packed(t) // t.rows * -(-t.rows // 16) * 16


def _packed(t: Term) -> int:
    """Bytes of a tile with its rows in whole blocks."""
    return t.rows * (-(-t.cols * (t.dtype or F32).bytes // 32) * 32)
