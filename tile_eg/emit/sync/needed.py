"""What a replay has to show: pairs of instructions of which one has finished when the other starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tile_eg.emit.sync.clock import count, guards, of_counts, reached
from tile_eg.emit.sync.order import Needed, Order, Verdict
from tile_eg.emit.sync.trace import Dependence, Trace
from tile_eg.ir.program import AIC

Place = tuple[str, int]  # core, instance
Pair = tuple[Place, Place]  # before, after
Check = tuple[int, int, int]
Filter = Callable[[str, Dependence], bool]


def number(at: Place) -> int:
    """An instance of either core as one number."""
    return at[1] + (0 if at[0] == AIC else 1_000_000)


class Pairs:
    """What these traces have to keep in order: dependences within a core, and pairs of instances of the two."""

    def __init__(self, traces: Mapping[str, Trace], cross: Sequence[Pair], only: Filter | None = None) -> None:
        """`only`, given a core and a dependence there, says which of those count (None: all of them)."""
        self.instances, self.cross = {core: t.instances for core, t in traces.items()}, cross
        self.within = {c: t.dependences if only is None else [d for d in t.dependences if only(c, d)] for c, t in traces.items()}
        self.known: dict[tuple, list[Check]] = {}
        self.most: dict[tuple, Needed] = {}

    def __bool__(self) -> bool:
        return bool(self.cross) or any(self.within.values())

    def pair(self, k: int) -> Pair:
        """The pair of check `k`: dependences core by core, then the pairs of the two cores."""
        for core, found in self.within.items():
            if k < len(found):
                return (core, found[k].before), (core, found[k].after)
            k -= len(found)
        return self.cross[k]

    def needed(self, order: Order) -> Needed:
        """What each instance has to know when it starts."""
        key = tuple(order.index.items())
        if key not in self.most:
            self.most[key] = _most(self._checks(order))
        return self.most[key]

    def open(self, order: Order, verdict: Verdict) -> list[Pair]:
        """Those that the replay leaves unordered."""
        starts, checks = verdict.starts, self._checks(order)
        if tuple(order.index.items()) not in self.most:  # comparing each is quicker than what would make all of an instance one
            return [self.pair(k) for k, (b, at, n) in enumerate(checks) if b not in starts or count(starts[b], at) < n]
        guard = guards(order.size)
        late = {b for b, least in self.needed(order).items() if b not in starts or not reached(starts[b], least, guard)}
        if not late:
            return []
        found = enumerate(checks)
        return [self.pair(k) for k, (b, at, n) in found if b in late and (b not in starts or count(starts[b], at) < n)]

    def _checks(self, order: Order) -> list[Check]:
        """The pairs as (instance after, place in its clock, least value there), which depends on the places alone."""
        key = tuple(order.index.items())
        if key not in self.known:
            facts = {core: [(order.index[core, i.pipe], i.number) for i in found] for core, found in self.instances.items()}
            later = {core: number((core, 0)) for core in facts}
            checks = [(d.after + later[core], *facts[core][d.before]) for core, found in self.within.items() for d in found]
            self.known[key] = [*checks, *((number(b), *facts[core][n]) for (core, n), b in self.cross)]
        return self.known[key]


def _most(checks: Iterable[Check]) -> Needed:
    """The checks of each instance as one clock, of each place the greatest."""
    most: dict[int, dict[int, int]] = {}
    for after, at, least in checks:
        places = most.setdefault(after, {})
        if places.get(at, 0) < least:
            places[at] = least
    return {after: of_counts(places.items()) for after, places in most.items()}
