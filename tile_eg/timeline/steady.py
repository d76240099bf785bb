"""Where a loop has found its rhythm: its trips are not run one by one, they are skipped by whole periods.

What a core does next depends on its times only by their differences. When two periods in a row have moved every time by the same
number of cycles (or not at all: a pipe that is not used), and the work of the trips ahead is the same, all further periods do so.
Flags go round in rings meanwhile (`timeline.rings`): a time is compared with that of the flag which has its part a period later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Generic, TypeVar

from tile_eg.ops.records import record
from tile_eg.timeline.cores import Core, Place
from tile_eg.timeline.rings import Name, renamed
from tile_eg.timeline.shapes import LONG_PERIODS, WORTH_A_SKIP, long_period, periods_ahead

LEAST_TRIPS = 3
LONGEST_PERIOD = 12
KEPT = 2 * LONGEST_PERIOD + 1  # states that are looked at: two periods and their ends
ROUNDS = 2  # rounds of a trip in which two cores go on, where a long period is looked for (assumed)
TOLERANCE = 1e-5
Seen = TypeVar("Seen")


@record
class State:
    """The times of a core in a fixed order, those of each of its `names` and how many, and how often each price was paid."""

    times: list[float]
    named: list[tuple[float, ...]]
    pending: list[int]
    uses: list[int]


Turned = Sequence[int] | None
"""For each name of a core the place of what it is called a period later; None where all keep theirs."""


def names(core: Core) -> Iterator[Name]:
    """Flags, counters and blocks of L0C under unit flags."""
    return chain(core.flags, (("counter", *name) for name in core.arrivals), core.units)


def state_of(core: Core) -> State | None:
    """None while a pipe holds what cannot start: then more than times matters."""
    times = [core.clock]
    for pipe in core.pipes.values():
        if pipe.waiting:
            return None
        times += (pipe.ready, pipe.done)
    named: list[tuple[float, ...]] = list(map(tuple, core.flags.values()))
    named += [tuple([time for time, _ in arrival]) for arrival in core.arrivals.values()]
    named += [(*(unit.filled or ()), *unit.drained) for unit in core.units.values()]
    return State(times, named, list(map(len, named)), [use.times for use in core.uses])


def turned(core: Core, place: Place, trips: int) -> Turned:
    """How the names of a core go round in so many trips of a loop; None, too, while some of them have not been used yet."""
    used = len(core.flags) + len(core.arrivals) + len(core.units)
    if (trips, used) not in place.turned:
        place.turned[trips, used] = _turned(core, renamed(place.rings, trips))
    return place.turned[trips, used]


def _turned(core: Core, found: Mapping[Name, Name]) -> Turned:
    known = {name: at for at, name in enumerate(names(core))}
    later = [known.get(_later(name, found), -1) for name in known] if found else []
    return None if not found or -1 in later else later


def _later(name: Name, found: Mapping[Name, Name]) -> Name:
    """A name some trips later; a block of L0C has its place in the slot behind the slot's."""
    slot = found.get(name[:2])
    return (*slot, *name[2:]) if slot else found.get(name, name)


def pace(a: State | None, b: State | None, places: Turned = None, like: float | None = None) -> float | None:
    """Cycles from a to b where all times moved by as many, or not at all; else None, or where they are not `like` so many."""
    period = in_step(a, b)
    if period is None or (like is not None and abs(like - period) > TOLERANCE * max(1.0, like)):
        return None
    assert a and b
    if a.pending != (b.pending if places is None else [b.pending[k] for k in places]):
        return None
    after = b.named if places is None else [b.named[k] for k in places]
    return period if all(_alike(x, y, period) for x, y in zip(a.named, after, strict=True)) else None


def in_step(a: State | None, b: State | None) -> float | None:
    """Cycles from a to b where the core and its pipes moved by as many, or not at all; else None. Most pairs fail here."""
    if a is None or b is None or len(a.named) != len(b.named):
        return None
    period = b.times[0] - a.times[0]
    return period if period > 0 and _alike(a.times, b.times, period) else None


def _alike(before: Sequence[float], after: Sequence[float], period: float) -> bool:
    """Whether all times moved by a period, or not at all."""
    limit = TOLERANCE * max(1.0, period)
    for x, y in zip(before, after, strict=True):
        step = y - x
        if (step < period - limit or step > period + limit) and (step > limit or step < -limit):
            return False
    return True


def jump(core: Core, before: State, now: State, place: Place, trips: int, periods: int) -> None:
    """Moves a core `periods` further, each of so many trips and like the one from `before` to `now`, its present state."""
    steps = iter([periods * (z - y) for y, z in zip(before.times, now.times, strict=True)])
    core.clock += next(steps)
    for pipe in core.pipes.values():
        ahead = next(steps)
        pipe.ready += ahead
        pipe.done += next(steps)
        for i in range(len(pipe.starts)):
            pipe.starts[i] += ahead
    _rename(core, _moved(before, now, turned(core, place, trips), periods), turned(core, place, periods * trips))
    for i, use in enumerate(core.uses):
        use.times += periods * (now.uses[i] - (before.uses[i] if i < len(before.uses) else 0))
    core.env[place.var] += periods * trips
    core.jumped = True


def _moved(before: State, now: State, places: Turned, periods: int) -> list[list[float]]:
    """The times of each name so many periods further, under the names that they have now."""
    out: list[list[float]] = [[] for _ in now.named]
    for at, was in zip(places or range(len(out)), before.named, strict=True):
        out[at] = [z + periods * (z - y) for y, z in zip(was, now.named[at], strict=True)]
    return out


def _rename(core: Core, times: Sequence[list[float]], places: Turned) -> None:
    """Gives the times to what is called by each name then."""
    held = times if places is None else [times[at] for _, at in sorted((to, at) for at, to in enumerate(places))]
    left = iter(held)
    for flag in core.flags.values():
        flag.clear()
        flag.extend(next(left))
    for arrival in core.arrivals.values():
        for i, time in enumerate(next(left)):
            arrival[i] = time, arrival[i][1]
    for unit in core.units.values():
        *filled, last, end = next(left)
        unit.filled, unit.drained = (filled[0], filled[1]) if filled else None, (last, end)


def _ahead(core: Core, place: Place, period: int, *, begun: bool) -> int:
    worth = 1 if place.nested else WORTH_A_SKIP
    return periods_ahead(place.shapes, place.var, place.trips, core.env, period, begun=begun, worth=worth)


def _long(core: Core, place: Place) -> int | None:
    """The trips of a period that is longer than those which are tried unasked; None where there is none."""
    return None if place.some else long_period(place.shapes, place.var, place.trips, core.env, LONGEST_PERIOD)


class Kept(Generic[Seen]):
    """What was seen last, enough of it for two periods. Where KEPT of them showed no short period, a long one is asked for."""

    def __init__(self, long: Callable[[], int | None], in_one: int = 1) -> None:
        """`long` looks for a long period, in trips, of each of which up to `in_one` are seen."""
        self.long, self.in_one = long, in_one
        self.clear()

    def clear(self) -> None:
        self.seen: deque[Seen] = deque(maxlen=KEPT)
        self.more: Sequence[int] = ()
        self.asked_in = KEPT

    def append(self, now: Seen) -> None:
        self.seen.append(now)
        self.asked_in -= 1
        if not self.asked_in:
            self.asked_in, found = LONG_PERIODS, self.long()
            self.more = [found * n for n in range(1, self.in_one + 1)] if found else ()
            self.seen = deque(self.seen, max([KEPT, *(2 * n + 1 for n in self.more)]))

    def periods(self, times: int) -> Sequence[int]:
        """The periods of which so many have been seen."""
        most = (len(self.seen) - 1) // times
        short = range(1, min(LONGEST_PERIOD, most) + 1)
        return [*short, *(n for n in self.more if n <= most)] if self.more else short


# ---- one core ---------------------------------------------------------------------------------------------------------------


class Watch:
    """Looks at a loop that no other core takes part in, at the start of each of its trips.

    A period that went by at a pace that was met before is enough, and any of a nested loop; else two that are alike are waited
    for.
    """

    def __init__(self, core: Core, place: Place) -> None:
        self.core, self.place = core, place
        self.kept: Kept[State | None] = Kept(lambda: _long(core, place))

    def start(self) -> None:
        self.kept.clear()

    def trip(self) -> None:
        self.kept.append(state_of(self.core))
        for period in self.kept.periods(1):
            ahead = _ahead(self.core, self.place, period, begun=False) if self._settled(period) else 0
            if ahead > 0:
                self._skip(period, ahead)
                return

    def _settled(self, period: int) -> bool:
        states = self.kept.seen
        if in_step(states[-1 - period], states[-1]) is None:
            return False
        places = turned(self.core, self.place, period)
        found = pace(states[-1 - period], states[-1], places)
        if found is None:
            return False
        known = self.place.nested or abs(self.place.paces.get(period, 0.0) - found) <= TOLERANCE * found
        if not known and len(states) > 2 * period:
            known = pace(states[-1 - 2 * period], states[-1 - period], places, found) is not None
        if known:
            self.place.paces[period] = found
        return known

    def _skip(self, period: int, ahead: int) -> None:
        before, now = self.kept.seen[-1 - period], self.kept.seen[-1]
        assert before is not None and now is not None
        jump(self.core, before, now, self.place, period, ahead)
        self.kept.clear()


# ---- cores that wait for each other -----------------------------------------------------------------------------------------

Trips = list[tuple[Place, int]]
Moves = tuple[tuple[Place, int], ...]
"""Of each core the loop that goes on in a period, and by how many trips."""
At = tuple[int, Trips, "State | None"]


class Together:
    """Looks at the cores of a block whenever each of them has gone as far as it can.

    A skip within a loop takes the rounds before it away. So of loops in loops, where each of a thousand tiles of the grid has a
    loop that is skipped, one round of every trip of the outermost loops is kept by itself: those trips are skipped as well.
    One period is enough where it is enough for `Watch`.
    """

    def __init__(self, cores: Sequence[Core]) -> None:
        self.cores = cores
        self.seen: Kept[list[At]] = Kept(self._long, ROUNDS)
        self.outer: Kept[list[At]] = Kept(self._long, ROUNDS)
        self.known: dict[Moves, float] = {}

    def _long(self) -> int | None:
        return max((found for core in self.cores for place in core.loops if (found := _long(core, place))), default=None)

    def round(self) -> None:
        now: list[At] = [(c.at, [(p, c.env[p.var]) for p in c.loops], state_of(c)) for c in self.cores]
        if self._new_trip(now) and self._skipped_among(self.outer, now):
            self.seen.clear()
        else:
            self._skipped_among(self.seen, now)

    def _new_trip(self, now: Sequence[At]) -> bool:
        """Whether a loop in a loop runs, and no round of these trips of the outermost loops has been kept."""
        nested = any(len(trips) > 1 for _, trips, _ in now) and all(state for *_, state in now)
        seen = self.outer.seen
        return nested and (not seen or _outermost(seen[-1]) != _outermost(now))

    def _skipped_among(self, kept: Kept[list[At]], now: list[At]) -> bool:
        """Whether the last rounds that were kept, with the present one, show a period by which the cores can be moved on."""
        kept.append(now)
        seen = kept.seen
        for n in kept.periods(1 if self.known else 2):
            if self._skip(seen[-1 - 2 * n] if len(seen) > 2 * n else None, seen[-1 - n], now):
                kept.clear()
                return True
        return False

    def _skip(self, first: list[At] | None, before: list[At], now: list[At]) -> bool:
        """Skips what can be skipped where the period that ended has a known pace, or is like the one in front of it.

        Whether the trips ahead are alike is asked first: where each tile has a trip more than the one before, they never are,
        though their pace may be.
        """
        moves: Moves = ()
        for core, y, z in zip(self.cores, before, now, strict=True):
            move = _move(y, z)
            if move is None or not _ahead(core, *move, begun=True):
                return False
            moves = (*moves, move)
        if (cycles := self._pace(moves, first, before, now)) is None:
            return False
        self.known[moves] = cycles
        ahead = min(_ahead(core, *move, begun=True) for core, move in zip(self.cores, moves, strict=True))
        for core, move, y, z in zip(self.cores, moves, before, now, strict=True):
            assert y[2] and z[2]
            jump(core, y[2], z[2], *move, ahead)
        return True

    def _pace(self, moves: Moves, first: list[At] | None, before: list[At], now: list[At]) -> float | None:
        """The cycles of the period that ended, the same for all cores; None where they are neither known nor met twice."""
        known = self.known.get(moves)
        last = [pace(y[2], z[2], turned(c, *m), known) for c, m, y, z in zip(self.cores, moves, before, now, strict=True)]
        if None in last or len({round(n / TOLERANCE) for n in last if n}) != 1:
            return None
        if known is not None or all(place.nested for place, _ in moves):
            return last[0]
        if first is None or tuple(map(_move, first, before)) != moves:
            return None
        there = zip(self.cores, moves, first, before, strict=True)
        return last[0] if None not in [pace(x[2], y[2], turned(c, *m), last[0]) for c, m, x, y in there] else None


def _outermost(at: Sequence[At]) -> list[Trips]:
    return [trips[:1] for _, trips, _ in at]


def _move(a: At, b: At) -> tuple[Place, int] | None:
    """The one loop that went on, by how many trips, where its core and pipes kept pace; else None."""
    if a[0] != b[0] or [p for p, _ in a[1]] != [p for p, _ in b[1]]:
        return None
    moved = [(p, z - y) for (p, y), (_, z) in zip(a[1], b[1], strict=True) if y != z]
    if len(moved) != 1 or moved[0][1] <= 0 or moved[0][0].some or in_step(a[2], b[2]) is None:
        return None
    return moved[0]
