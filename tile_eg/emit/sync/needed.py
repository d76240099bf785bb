"""What a replay has to show: pairs of instructions of which one has finished when the other starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tile_eg.emit.sync.clock import BITS, MOST
from tile_eg.emit.sync.order import Needed, Order, Verdict
from tile_eg.emit.sync.trace import Instance
from tile_eg.ir.program import AIC

Place = tuple[str, int]  # core, instance
Pair = tuple[Place, Place]  # before, after
Check = tuple[int, int, int]


def number(at: Place) -> int:
    """An instance of either core as one number."""
    return at[1] + (0 if at[0] == AIC else 1_000_000)


class Pairs:
    """Pairs of instances of these traces."""

    def __init__(self, pairs: list[Pair], instances: Mapping[str, Sequence[Instance]]) -> None:
        self.pairs, self.instances = pairs, instances
        self.known: dict[tuple, list[Check]] = {}

    def needed(self, order: Order) -> Needed:
        """What each instance has to know when it starts, by place in its clock the most."""
        return _most(self._checks(order))

    def open(self, order: Order, verdict: Verdict) -> list[Pair]:
        """Those that the replay leaves unordered."""
        starts = verdict.starts
        found = enumerate(self._checks(order))
        return [self.pairs[k] for k, (b, at, n) in found if b not in starts or starts[b] >> BITS * at & MOST < n]

    def _checks(self, order: Order) -> list[Check]:
        """The pairs as (instance after, place in its clock, least value there), which depends on the places alone."""
        key = tuple(order.index.items())
        if key not in self.known:
            facts = {core: [(order.index[core, i.pipe], i.number) for i in found] for core, found in self.instances.items()}
            later = {core: number((core, 0)) for core in facts}
            self.known[key] = [(n + later[core], *facts[c][k]) for (c, k), (core, n) in self.pairs]
        return self.known[key]


def _most(checks: Iterable[Check]) -> Needed:
    """The checks of each instance, of each place the greatest."""
    most: dict[int, dict[int, int]] = {}
    for after, at, least in checks:
        places = most.setdefault(after, {})
        if places.get(at, 0) < least:
            places[at] = least
    return {after: tuple(places.items()) for after, places in most.items()}
