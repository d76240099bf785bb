"""One loop over tiles and trips: the skewed loop of a persistent kernel goes on from one tile to the next.

A skewed loop runs some trips longer than it has, and in its first and last trips one kind of core waits for the other: for each
tile once the way from the first product to the vector cores and back. Where the loop goes on, the first trips of the next tile
are issued in the last ones of this tile. What a tile does before its loop is then done in its first trip, and what it does behind
it in its last one, each as late as the steps of the loop that it goes with.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import lcm

from tile_eg.chips import Chip
from tile_eg.extract.base import Refused
from tile_eg.extract.flags import shrink
from tile_eg.extract.memory import assign
from tile_eg.extract.schedule import FIRST, LAST, Item, LoopStep, Schedule, Step, Storage, StorageId, overwritten
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.values import Values
from tile_eg.ops.types import Level

LOADS = "MTE2"
L0_SLOTS = 2
MOST_ROUNDS = 12
"""Trips after which the rings of a loop have to come round where tiles have other numbers of trips: each tile goes through whole
rounds of them (assumed)."""
TILES, BEYOND = 3, 3
"""Tiles, and trips beyond the skew, in which a joined loop is looked at: each tile then has one before and one behind it."""


def joined(schedule: Schedule, chip: Chip, fitting: bool = False) -> Schedule | None:
    """A copy whose one loop goes on from tile to tile; None where it has another form, or where memory has no room for that.

    `fitting`: with rings so deep that tiles of different numbers of trips go through the fewest in all; None where they are so
    already.
    """
    loop = loop_of(schedule)
    made = loop and _going(schedule, loop, chip, fitting)
    if not loop or not made or not _alike(schedule, loop, made) or not _has_room(made, chip):
        return None
    while _counted(schedule, loop) and rounds_of(made, loop) > MOST_ROUNDS and (ring := _ahead(made)):
        shrink(made, ring)
        if not _has_room(made, chip):
            return None
    for step, _ in made.walk():
        if step.at == FIRST and step.pipe.endswith(LOADS):
            made = _with_two(made, step.dst, chip)
    if fitting and made.shrunk > schedule.shrunk:
        return None
    return made if not _counted(schedule, loop) or rounds_of(made, loop) <= MOST_ROUNDS else None


def _going(schedule: Schedule, loop: LoopStep, chip: Chip, fitting: bool) -> Schedule | None:
    """The schedule with all that a tile does in its loop, and no places; None where that has fewer trips than steps are late, or
    where no rings are more `fitting`."""
    storages, counted = _out_of_turns(schedule, chip), _counted(schedule, loop)
    before, behind = _outside(schedule, loop)
    steps = [*_begun(before, loop), *_steps(loop), *_in_place(_ended(behind, loop), loop, storages)]
    body = replace(loop, body=list[Item](steps), skew=max(s.lag for s in steps))
    for sid in _twice(steps, counted):
        held = storages[sid]
        held.slots, held.ring, held.least, held.later, held.decisions = 2, 0, 2, 0, ()
    depth = max((s.slots for s in storages.values() if s.ring == loop.loop), default=1)
    if fitting:
        tiles = [max(n, body.skew) for n in schedule.graph.values.trips_of_some(loop.loop)] if counted else []
        if (deeper := fitting_depth(tiles, depth)) == depth:
            return None
        depth = deeper
    if counted:
        _even(storages, loop, depth, fitting)
    top = [*(x for x in schedule.top if schedule.before_tiles(x)), body]
    fits = counted or body.skew <= loop.trips
    return replace(schedule, storages=storages, top=top, peaks={}, addresses={}, joined=True, copies=1) if fits else None


def _counted(schedule: Schedule, loop: LoopStep) -> bool:
    """Whether tiles have other numbers of trips."""
    return loop.loop in schedule.graph.values.counts


def _ahead(schedule: Schedule) -> Storage | None:
    """A ring into which loads run ahead of readers in later trips, and which can do with fewer slots."""
    return next((s for s in schedule.storages.values() if s.later and s.spare > 0), None)


def _has_room(schedule: Schedule, chip: Chip) -> bool:
    try:
        assign(schedule, chip)
    except Refused:
        return False
    return True


def _with_two(schedule: Schedule, sid: StorageId, chip: Chip) -> Schedule:
    """With two slots for what a tile loads first, where nothing else has less room then: the next tile's comes meanwhile."""
    storages = _out_of_turns(schedule, chip)
    held = storages[sid]  # type: ignore[index]
    if held.slots > 1 or held.given:
        return schedule
    held.slots, held.ring, held.least = 2, 0, 2
    trial = replace(schedule, storages=storages, peaks={}, addresses={})
    fits = _has_room(trial, chip) and (trial.shrunk, trial.crowded) == (schedule.shrunk, schedule.crowded)
    return trial if fits else schedule


def _out_of_turns(schedule: Schedule, chip: Chip) -> dict[int, Storage]:
    """Copies of the storages, with one place for each result in L0C where they took turns (`extract/turns.py`): they do so again
    once they have places."""
    storages = {sid: replace(s) for sid, s in schedule.storages.items()}
    results = [s for s in storages.values() if s.level is Level.L0C]
    if sum(s.bytes for s in results) > chip.level_bytes(Level.L0C):
        for s in results:
            s.slots, s.ring = 1, None
    return storages


def loop_of(schedule: Schedule) -> LoopStep | None:
    """The one loop of a persistent kernel's tiles, if it is skewed, and of steps alone."""
    loops = [x for x in schedule.top if isinstance(x, LoopStep)]
    if not schedule.persistent or not schedule.alike or schedule.finished or len(loops) != 1:
        return None
    (loop,) = loops
    values, plain = schedule.graph.values, all(isinstance(x, Step) for x in loop.body) and loop.ahead == 1
    return loop if loop.skew and plain and not values.sizes and _known(loop, values) else None


def _even(storages: dict[int, Storage], loop: LoopStep, depth: int, fitting: bool) -> None:
    """Gives rings of a loop a number of slots that goes into this depth: all then come round as soon as that does.

    Not fewer than they have; `fitting`: on chip rather fewer, if they are enough, since flags and room are few.
    """
    for s in storages.values():
        if s.ring == loop.loop:
            ways = [n for n in range(1, depth + 1) if depth % n == 0]
            fewer = [n for n in ways if max(2, s.least) <= n <= s.slots] if fitting and s.level is not Level.WS else []
            s.slots = max(fewer, default=next(n for n in ways if n >= s.slots))


def fitting_depth(tiles: Iterable[int], least: int) -> int:
    """The depth of rings, `least` or more, with which tiles of so many trips each go through the fewest in all."""
    trips = Counter(tiles)

    def whole(depth: int) -> int:
        rounds = lcm(L0_SLOTS, depth)
        return sum(-(-n // rounds) * rounds * count for n, count in trips.items())

    return min((d for d in range(least, MOST_ROUNDS + 1) if lcm(L0_SLOTS, d) <= MOST_ROUNDS), key=whole, default=least)


def _known(loop: LoopStep, values: Values) -> bool:
    """Whether the number of trips is known, or follows from the tile alone and is never 0."""
    count = values.counts.get(loop.loop)
    return count is None or (values.fewest.get(loop.loop, 0) > 0 and not all_elements_in(count))


def rounds_of(schedule: Schedule, loop: LoopStep) -> int:
    """After how many trips all rings of a loop come round together."""
    return lcm(L0_SLOTS, *(s.slots for s in schedule.storages.values() if s.ring == loop.loop))


def _outside(schedule: Schedule, loop: LoopStep) -> tuple[list[Step], list[Step]]:
    """What each tile does before its loop, and behind it."""
    at = schedule.top.index(loop)
    sides = schedule.top[:at], schedule.top[at + 1 :]
    before, behind = ([x for x in side if isinstance(x, Step) and not schedule.before_tiles(x)] for side in sides)
    return before, behind


def _begun(before: list[Step], loop: LoopStep) -> list[Step]:
    """What stands before the loop, each step as late as the first that needs its result."""
    out: list[Step] = []
    for step in reversed(before):
        readers = [s.lag for s in (*_steps(loop), *out) if step.dst in (*s.srcs, s.dst)]
        out.insert(0, replace(step, at=FIRST, lag=min(readers, default=0)))
    return out


def _ended(behind: list[Step], loop: LoopStep) -> list[Step]:
    """What stands behind the loop, each step as soon as all that it needs is there: half a skew later where it crosses cores."""
    halves: dict[StorageId, tuple[int, str]] = {}
    for s in _steps(loop):
        halves[s.dst] = max(halves.get(s.dst, (0, "")), (2 * s.lag, s.core))
    out: list[Step] = []
    for step in behind:
        needed = [halves[s] for s in (*step.srcs, step.dst) if s in halves]
        own = max((h + loop.halves * (core != step.core) for h, core in needed), default=0)
        halves[step.dst] = own, step.core
        out.append(replace(step, at=LAST, lag=own // 2))
    for n, step in reversed(list(enumerate(out))):
        readers = [s.lag for s in out[n + 1 :] if step.dst in (*s.srcs, s.dst)]
        if step.node.op == "VBrcb" and readers:  # takes more room than what it is made of
            out[n] = replace(step, lag=min(readers))
    return out


def _steps(loop: LoopStep) -> Iterator[Step]:
    yield from (x for x in loop.body if isinstance(x, Step))


def _in_place(last: list[Step], loop: LoopStep, storages: dict[int, Storage]) -> list[Step]:
    """What stands behind the loop, with results in the place of what goes from trip to trip where nothing reads that again."""
    inside = {s for step in _steps(loop) for s in (*step.srcs, step.dst)}
    names: dict[StorageId, StorageId] = {}
    out: list[Step] = []
    for n, step in enumerate(last):
        srcs = tuple(names.get(s, s) for s in step.srcs)
        again = {names.get(s, s) for later in last[n + 1 :] for s in later.srcs}
        late = {later.lag for later in last[n + 1 :] if step.dst in later.srcs}
        for source in overwritten(step.node, srcs):
            free = source in inside and source not in again and step.dst not in inside
            if free and late <= {step.lag} and _fits(storages, source, step.dst):
                names[step.dst] = source
                break
        out.append(replace(step, srcs=srcs, dst=names.get(step.dst, step.dst)))
    for sid in names:
        if isinstance(sid, int):
            del storages[sid]
    return out


def _fits(storages: dict[int, Storage], a: StorageId, b: StorageId) -> bool:
    found = [storages[x] for x in (a, b) if isinstance(x, int)]
    forms = {(s.level, s.rows, s.cols, s.dtype, s.share, s.slots, s.slot_bytes, s.gap) for s in found}
    return len(found) == 2 and len(forms) == 1 and found[0].slots == 1


def _twice(steps: Iterable[Step], counted: bool) -> list[int]:
    """What tiles touch in trips of the loop that are apart: this tile's and the next one's need a place each. So does what only
    ends tiles where these may have few trips: the next tile's may come before this one's is read.
    """
    lags: dict[StorageId, set[tuple[int, str]]] = defaultdict(set)
    for step in steps:
        for sid in {step.dst, *step.srcs}:
            lags[sid].add((step.lag, step.at))
    apart = {sid for sid, found in lags.items() if len({lag for lag, _ in found}) > 1}
    alone = [{""}] if counted else [{""}, {LAST}]
    ends = {sid for sid in apart if {at for _, at in lags[sid]} not in alone}
    return sorted(sid for sid in ends if isinstance(sid, int))


# ---- whether every step finds what it is to find -----------------------------------------------------------------------------


Run = tuple[Step, int, int]
"""A step, its tile, and its trip; 0 outside of loops."""


def _alike(schedule: Schedule, loop: LoopStep, made: Schedule) -> bool:
    """Whether every step of a tile reads what the same step reads where one tile is done after the other."""
    body = next(x for x in made.top if isinstance(x, LoopStep))
    most, few = min(loop.trips, body.skew + BEYOND), min(loop.trips, 2)
    counted, rounds = _counted(schedule, loop), rounds_of(made, loop)
    each = [most, 1, few] if counted else [most] * TILES
    long = [-(-max(n, body.skew) // rounds) * rounds for n in each] if counted else each
    going_on = 0 if counted else most
    plain = _found(_one_by_one(schedule, loop, each), schedule.storages, loop, going_on)
    return plain == _found(_going_on(body, each, long), made.storages, loop, going_on)


def _found(runs: Iterable[Run], storages: dict[int, Storage], loop: LoopStep, trips: int) -> dict[tuple, list[tuple | None]]:
    """By run of a step, which runs wrote what it reads, where rings go on by so many `trips` a tile."""
    held: dict[tuple[StorageId, int], tuple] = {}
    out: dict[tuple, list[tuple | None]] = {}
    for step, tile, trip in runs:
        me = id(step.node), step.back_edge, tile, trip
        slots = {s: (s, _slot(storages, s, loop, tile * trips + trip, tile)) for s in (step.dst, *step.srcs)}
        out[me] = [held.get(slots[s]) for s in step.srcs]
        held[slots[step.dst]] = me
    return out


def _slot(storages: dict[int, Storage], sid: StorageId, loop: LoopStep, trip: int, tile: int) -> int:
    if not isinstance(sid, int) or storages[sid].ring is None:
        return 0
    return (tile if storages[sid].ring == 0 else trip) % storages[sid].slots


def _one_by_one(schedule: Schedule, loop: LoopStep, each: Sequence[int]) -> Iterator[Run]:
    before, behind = _outside(schedule, loop)
    for tile, trips in enumerate(each):
        yield from ((s, tile, 0) for s in before)
        for t in range(trips + loop.skew):
            yield from ((s, tile, t - s.lag) for s in _steps(loop) if 0 <= t - s.lag < trips)
        yield from ((s, tile, 0) for s in behind)


def _going_on(body: LoopStep, each: Sequence[int], long: Sequence[int]) -> Iterator[Run]:
    """The steps in the order of a loop in which a tile has as many trips as `each` says, in so `long` a piece of it."""
    starts = [sum(long[:tile]) for tile in range(len(each))]
    for t in range(sum(long) + body.skew):
        for step in _steps(body):
            tile = max((k for k, start in enumerate(starts) if start <= t - step.lag), default=-1)
            trip = t - step.lag - starts[tile]
            if tile >= 0 and trip < each[tile] and trip == {FIRST: 0, LAST: each[tile] - 1}.get(step.at, trip):
                yield step, tile, trip if not step.at else 0
