"""Where a loop has found its rhythm: its trips are not run one by one, they are skipped by whole periods.

What a core does next depends on its times only by their differences. When two periods in a row have moved every time by the same
number of cycles (or not at all: a pipe that is not used), and the work of the trips ahead is the same, all further periods do so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from tile_eg.timeline.cores import Core, Place
from tile_eg.timeline.shapes import periods_ahead

LEAST_TRIPS = 3
LONGEST_PERIOD = 12
KEPT = 2 * LONGEST_PERIOD + 1  # states that are looked at: two periods and their ends
TOLERANCE = 1e-5


@dataclass(frozen=True)
class State:
    """The times of a core in a fixed order, how many flags are pending, and how often each price was paid."""

    times: list[float]
    pending: list[int]
    uses: list[int]


def state_of(core: Core) -> State | None:
    """None while a pipe holds what cannot start: then more than times matters."""
    times, pending = [core.clock], []
    for pipe in core.pipes.values():
        if pipe.waiting:
            return None
        times += (pipe.ready, pipe.done)
    for flag in core.flags.values():
        pending.append(len(flag))
        times += flag
    for arrival in core.arrivals.values():
        pending.append(len(arrival))
        times += [time for time, _ in arrival]
    for unit in core.units.values():
        pending.append(unit.filled is not None)
        times += (*(unit.filled or ()), *unit.drained)
    return State(times, pending, [use.times for use in core.uses])


def pace(a: State | None, b: State | None) -> float | None:
    """Cycles from a to b where all times moved by as many, or not at all; else None."""
    if a is None or b is None or a.pending != b.pending:
        return None
    period = b.times[0] - a.times[0]
    limit = TOLERANCE * max(1.0, period)
    for x, y in zip(a.times, b.times, strict=True):
        step = y - x
        if (step < period - limit or step > period + limit) and (step > limit or step < -limit):
            return None
    return period if period > 0 else None


def paces_twice(a: State | None, b: State | None, c: State | None) -> float | None:
    """Cycles of a period, where two periods in a row (a to b, b to c) are alike; else None."""
    period, before = pace(b, c), pace(a, b)
    alike = period is not None and before is not None and abs(period - before) <= TOLERANCE * max(1.0, period)
    return period if alike else None


def jump(core: Core, before: State, now: State, periods: int) -> None:
    """Moves a core `periods` further, each like the one from `before` to `now`, its present state."""
    steps = iter([periods * (z - y) for y, z in zip(before.times, now.times, strict=True)])
    core.clock += next(steps)
    for pipe in core.pipes.values():
        ahead = next(steps)
        pipe.ready += ahead
        pipe.done += next(steps)
        for i in range(len(pipe.starts)):
            pipe.starts[i] += ahead
    for flag in core.flags.values():
        for i in range(len(flag)):
            flag[i] += next(steps)
    for arrival in core.arrivals.values():
        for i, (time, pipe_name) in enumerate(arrival):
            arrival[i] = time + next(steps), pipe_name
    for unit in core.units.values():
        unit.filled = (unit.filled[0] + next(steps), unit.filled[1] + next(steps)) if unit.filled else None
        unit.drained = unit.drained[0] + next(steps), unit.drained[1] + next(steps)
    for i, use in enumerate(core.uses):
        use.times += periods * (now.uses[i] - (before.uses[i] if i < len(before.uses) else 0))
    core.jumped = True


def _ahead(core: Core, place: Place, period: int, *, begun: bool) -> int:
    return periods_ahead(place.shapes, place.var, place.trips, core.env, period, begun=begun)


# ---- one core ---------------------------------------------------------------------------------------------------------------


class Watch:
    """Looks at a loop that no other core takes part in, at the start of each of its trips.

    A period that went by at a pace that was met before is enough; else two that are alike are waited for. `nested`: a trip of the
    loop is long, it holds other loops.
    """

    def __init__(self, core: Core, place: Place, nested: bool) -> None:
        self.core, self.place, self.nested = core, place, nested
        self.states: deque[State | None] = deque(maxlen=KEPT)
        self.known: dict[int, float] = {}

    def start(self) -> None:
        self.states.clear()

    def trip(self) -> None:
        states = self.states
        states.append(state_of(self.core))
        for period in range(1, min(LONGEST_PERIOD, len(states) - 1) + 1):
            ahead = _ahead(self.core, self.place, period, begun=False) if self._settled(period) else 0
            if ahead > 0:
                self._skip(period, ahead)
                return

    def _settled(self, period: int) -> bool:
        found = pace(self.states[-1 - period], self.states[-1])
        if found is None:
            return False
        known = self.nested or abs(self.known.get(period, 0.0) - found) <= TOLERANCE * found
        if not known and len(self.states) > 2 * period:
            known = paces_twice(self.states[-1 - 2 * period], self.states[-1 - period], self.states[-1]) is not None
        if known:
            self.known[period] = found
        return known

    def _skip(self, period: int, ahead: int) -> None:
        before, now = self.states[-1 - period], self.states[-1]
        assert before is not None and now is not None
        jump(self.core, before, now, ahead)
        self.core.env[self.place.var] += period * ahead
        self.states.clear()


# ---- cores that wait for each other -----------------------------------------------------------------------------------------

Trips = list[tuple[Place, int]]
At = tuple[int, Trips, "State | None"]


class Together:
    """Looks at the cores of a block whenever each of them has gone as far as it can.

    A skip within a loop takes the rounds before it away. So of loops in loops, where each of a thousand tiles of the grid has a
    loop that is skipped, one round of every trip of the outermost loops is kept by itself: those trips are skipped as well.
    """

    def __init__(self, cores: Sequence[Core]) -> None:
        self.cores = cores
        self.seen: deque[list[At]] = deque(maxlen=KEPT)
        self.outer: deque[list[At]] = deque(maxlen=KEPT)

    def round(self) -> None:
        now: list[At] = [(c.at, [(p, c.env[p.var]) for p in c.loops], state_of(c)) for c in self.cores]
        if self._new_trip(now) and self._skipped_among(self.outer, now):
            self.seen.clear()
        else:
            self._skipped_among(self.seen, now)

    def _new_trip(self, now: Sequence[At]) -> bool:
        """Whether a loop in a loop runs, and no round of these trips of the outermost loops has been kept."""
        nested = any(len(trips) > 1 for _, trips, _ in now) and all(state for *_, state in now)
        return nested and (not self.outer or _outermost(self.outer[-1]) != _outermost(now))

    def _skipped_among(self, seen: deque[list[At]], now: list[At]) -> bool:
        """Whether the last rounds of `seen`, with the present one, show a period by which the cores can be moved on."""
        seen.append(now)
        periods = range(1, min(LONGEST_PERIOD, (len(seen) - 1) // 2) + 1)
        if not any(self._skip(seen[-1 - 2 * n], seen[-1 - n], now) for n in periods):
            return False
        seen.clear()
        return True

    def _skip(self, *ends: list[At]) -> bool:
        """Skips what can be skipped where two periods, from the first of three rounds to the last, are alike."""
        moves = [_move(core, *at) for core, *at in zip(self.cores, *ends, strict=True)]
        if None in moves or len({round(move[2] / TOLERANCE) for move in moves if move}) != 1:
            return False
        ahead = min(_ahead(core, m[0], m[1], begun=True) for core, m in zip(self.cores, moves, strict=True) if m)
        if ahead <= 0:
            return False
        for core, move, before, now in zip(self.cores, moves, ends[1], ends[2], strict=True):
            assert move and before[2] and now[2]
            jump(core, before[2], now[2], ahead)
            core.env[move[0].var] += move[1] * ahead
        return True


def _outermost(at: Sequence[At]) -> list[Trips]:
    return [trips[:1] for _, trips, _ in at]


def _move(core: Core, a: At, b: At, c: At) -> tuple[Place, int, float] | None:
    """The one loop that went on in two periods that are alike, by how many trips and cycles in each; else None."""
    if not a[0] == b[0] == c[0] or not [p for p, _ in a[1]] == [p for p, _ in b[1]] == [p for p, _ in c[1]]:
        return None
    moved = [(p, z - y) for (p, x), (_, y), (_, z) in zip(a[1], b[1], c[1], strict=True) if not x == y == z]
    alike = all(z - y == y - x for (_, x), (_, y), (_, z) in zip(a[1], b[1], c[1], strict=True))
    cycles = paces_twice(a[2], b[2], c[2]) if len(moved) == 1 and alike and moved[0][1] > 0 else None
    return (*moved[0], cycles) if cycles else None
