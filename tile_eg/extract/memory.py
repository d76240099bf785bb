"""Lifetimes and addresses: when each storage is live, in place reuse, and a place for everything or a refusal in bytes."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from functools import cached_property
from itertools import product
from math import inf
from typing import NamedTuple

from tile_eg.chips import Chip
from tile_eg.extract.flags import fit_ids, missing, shrink
from tile_eg.extract.next_tile import known_loads
from tile_eg.extract.packing import Life, least_bytes
from tile_eg.extract.placing import kept_for_tiles, may_fit, overflow, pack_apart, refuse_closer
from tile_eg.extract.schedule import Item, LoopStep, Schedule, Step, Storage, StorageId, overwritten
from tile_eg.extract.turns import take_turns
from tile_eg.ir.machine import LINE_BYTES
from tile_eg.ir.program import AIV
from tile_eg.ir.sharing import Itself, once
from tile_eg.ops.physical import STAGED
from tile_eg.ops.records import changed
from tile_eg.ops.types import Level

ON_CHIP = (Level.L1, Level.L0C, Level.UB)
DRAIN = 1.25  # cycles of V, for one of a store that it does not wait for: its start-up, its share of HBM (assumed)


class _Line:
    """Positions of every access; a loop is a span, and what is live around its back edge lives through all of it."""

    def __init__(self, schedule: Schedule) -> None:
        self.storages, self.persistent, self.copied = schedule.storages, schedule.persistent, schedule.copies > 1
        self.time = 0
        self.span: dict[int, tuple[int, int]] = {}
        self.events: dict[int, list[tuple[int, bool, Step, tuple[int, ...]]]] = defaultdict(list)
        self.reuse: dict[int, set[int]] = defaultdict(set)
        self.known: dict[tuple, Life] = {}
        self._visit(schedule.top, ())

    @staticmethod
    def of(schedule: Schedule) -> _Line:
        """That of a schedule: copies in one order share what is known of it, as their storages differ in slots alone."""
        known = once("line", (Itself(schedule.top), schedule.persistent, schedule.copies > 1), lambda: _Line(schedule))
        line = copy(known)
        line.storages = schedule.storages
        return line

    def _visit(self, items: list[Item], path: tuple[int, ...]) -> None:
        for item in items:
            if isinstance(item, LoopStep):
                start = self.time
                self.time += 1
                self._visit(item.body, (*path, item.loop))
                self.span[item.loop] = (start, self.time)
                self.time += 1
            else:
                self._access(item, path)

    def _access(self, step: Step, path: tuple[int, ...]) -> None:
        for s in step.srcs:
            if isinstance(s, int):
                self.events[s].append((2 * self.time, False, step, path))
        if isinstance(step.dst, int):
            self.events[step.dst].append((2 * self.time + 1, True, step, path))
            self.reuse[step.dst] |= {s for s in overwritten(step.node, step.srcs) if isinstance(s, int)}
        if step.scratch is not None:
            self.events[step.scratch].append((2 * self.time, True, step, path))
            self.events[step.scratch].append((2 * self.time + 1, False, step, path))
        self.time += 1

    def crosses(self, sid: int) -> bool:
        """Whether another pipe than V meets a storage."""
        return any(step.pipe != "AIV.V" for _, _, step, _ in self.events[sid])

    def scratch(self, sid: int) -> bool:
        """Whether an instruction takes a storage for itself alone."""
        return all(step.scratch == sid for _, _, step, _ in self.events[sid])

    def leaves(self, sid: int) -> bool:
        """Whether V fills a storage and a store takes it out of UB, in one trip of a loop."""
        pipes = {step.pipe for _, _, step, _ in self.events[sid]}
        return pipes == {"AIV.V", "AIV.MTE3"} and all(path for *_, path in self.events[sid])

    def life(self, sid: int, roomy: bool, apart: bool) -> Life:
        """As `lifetimes` has it; found once for as many slots."""
        s = self.storages[sid]
        key = sid, roomy, apart, s.slots, s.ring, s.ahead
        if key not in self.known:
            self.known[key] = self._life(sid, roomy, apart)
        return self.known[key]

    def _life(self, sid: int, roomy: bool, apart: bool) -> Life:
        events, pipes = self.events[sid], self.crosses(sid)
        if self._from_trip_to_trip(events):
            inside = [e for e in events if not e[2].at]
            return Life(0, 2 * self.time, {s for s in self.reuse[sid] if s != sid}, *self._gap(sid, inside))
        copied = self.copied and self.storages[sid].level is Level.UB
        if self.persistent and not copied and (self.storages[sid].ring == 0 or (apart and pipes)):
            return Life(0, 2 * self.time, {s for s in self.reuse[sid] if s != sid})
        first, last = min(e[0] for e in events), max(e[0] for e in events)
        if self.storages[sid].level is not Level.WS and len({step.core for _, _, step, _ in events}) > 1:
            return Life(0, 2 * self.time)  # flags between cores guard this place for one storage only
        common = list(events[0][3])
        for e in events:
            common = [a for a, b in zip(common, e[3], strict=False) if a == b]
        for e in events:
            for loop in e[3]:
                if loop not in common:
                    start, end = self.span[loop]
                    first, last = min(first, 2 * start), max(last, 2 * end)
        roomy = roomy and not any(step.at for _, _, step, _ in events)
        if common and (self._goes_round(sid, events) or (roomy and pipes)):
            start, end = self.span[common[-1]]
            first, last = min(first, 2 * start), max(last, 2 * end)
        return Life(first, last, {s for s in self.reuse[sid] if s != sid}, *self._gap(sid, events))

    def _from_trip_to_trip(self, events: list) -> bool:
        """Whether a tile of a joined schedule begins or ends with it what other trips work on, or is in several trips at once."""
        ends = {(step.at, step.lag) for _, _, step, _ in events}
        return any(at for at, _ in ends) and len(ends) > 1

    def _gap(self, sid: int, events: list) -> tuple[tuple[int, int] | None, tuple[tuple[int, ...], int] | None]:
        """The gap of a storage with one slot, and where its accesses in loops are: one loop and one lag, or nowhere."""
        inside = [e for e in events if e[3]]
        places = {(path, step.lag) for _, _, step, path in inside}
        if len(places) != 1 or self.storages[sid].slots > 1:
            return None, None
        written = min((t for t, writes, *_ in inside if writes), default=-1)
        read = max((t for t, writes, *_ in inside if not writes and t < written), default=-1)
        return ((read, written) if read >= 0 else None), places.pop()

    def _goes_round(self, sid: int, events: list) -> bool:
        reads = min((t for t, w, *_ in events if not w), default=1 << 60)
        writes = min((t for t, w, *_ in events if w), default=1 << 60)
        lags = {step.lag for _, _, step, _ in events}
        return reads < writes or self.storages[sid].slots > 1 or self.storages[sid].ahead > 1 or len(lags) > 1

    def heirs(self, sid: int) -> frozenset[int]:
        """What V makes of a storage, and of that again, each in the place of what it reads last, in the trip that filled it."""
        out: list[int] = []
        while heir := next((h for h in self.reuse if sid in self.reuse[h] and self._inherits(h, sid)), None):
            out.append(heir)
            sid = heir
        return frozenset(out)

    def _inherits(self, heir: int, sid: int) -> bool:
        """Whether a storage is written by the step that reads another one last, and may have its place until the trip ends."""
        one, other = self.storages[heir], self.storages[sid]
        own, held = self.life(heir, False, False), self.life(sid, False, False)
        alike = (one.slots, one.slot_bytes, one.dtype) == (1, other.slot_bytes, other.dtype) and other.slots == 1
        return alike and own.at is not None and own.at == held.at and own.first == held.last + 1 and not self.crosses(heir)

    def drain(self, sid: int) -> int:
        """The time in the next tile by which a store that ends a tile has left, beside the work of V; -1: it does not end one."""
        last = max(self.events[sid], key=lambda e: e[0])[2]
        return self._beside(last, -1) if last.pipe == "AIV.MTE3" else -1

    def left(self, sid: int) -> int:
        """The time in its trip by which what V fills and a store takes out has left, beside the work of V behind it."""
        at, _, last, path = max(self.events[sid], key=lambda e: e[0])
        return min(self._beside(last, at), 2 * self.span[path[-1]][1])

    def _beside(self, store: Step, until: int) -> int:
        """The time by which a store has left that is issued at some time, beside what V does behind that."""
        left, steps = DRAIN * store.cycles, self._vector
        for t, cycles in steps[bisect(steps, (until, inf)) :]:
            if left <= 0:
                break
            left, until = left - cycles, t
        return until

    @cached_property
    def _vector(self) -> list[tuple[int, float]]:
        """When V does what, in cycles."""
        events = (e for found in self.events.values() for e in found)
        return sorted({(t, float(s.cycles)) for t, writes, s, _ in events if writes and s.pipe == "AIV.V"})


def lifetimes(
    schedule: Schedule, roomy: bool = False, apart: bool = False, close: frozenset[int] = frozenset(), inherited: bool = False,
    tight: bool = False, waiting: bool = True, *, line: _Line | None = None,
) -> dict[int, Life]:  # fmt: skip
    """The life of every storage that is used.

    `roomy` lets what meets another pipe than V live through its whole loop: nothing then waits for a place that it shares;
    those in `close` are left out of this, and `inherited` lets its heirs have the place, too. `apart` does the same for the
    loop of a persistent kernel over its tiles. `tight`: what an instruction takes for itself may lie where the one before it has
    the same, for which it waits then. Without `waiting` nothing has the place of what is in `close` before that has left.
    """
    line = line or _Line.of(schedule)
    lives = {sid: line.life(sid, roomy and sid not in close, apart) for sid in schedule.storages if line.events[sid]}
    if inherited:
        kept = [sid for sid in lives if sid not in close and line.crosses(sid) and schedule.storages[sid].level is Level.UB]
        lives |= {sid: changed(lives[sid], heirs=line.heirs(sid)) for sid in kept}
    if not waiting:
        out = [sid for sid in close & lives.keys() if line.leaves(sid)]
        lives |= {sid: changed(lives[sid], last=max(lives[sid].last, line.left(sid))) for sid in out}
    alone = (sid for sid, life in lives.items() if tight and life.last == life.first + 1 and line.scratch(sid))
    return lives | {sid: changed(lives[sid], last=lives[sid].first) for sid in alone}


class _Lives:
    """Roomy lives of a schedule's storages, found once for all levels while no buffer gives up a slot."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.line = schedule, _Line.of(schedule)
        self.known: dict[tuple, dict[int, Life]] = {}

    def __call__(self, apart: bool = False, closer: _Closer | None = None) -> dict[int, Life]:
        """As `lifetimes`."""
        key = tuple((s.slots, s.ring) for s in self.schedule.storages.values()), apart, closer
        if key not in self.known:
            self.known[key] = lifetimes(self.schedule, True, apart, *(closer or _Closer()), line=self.line)
        return self.known[key]


def _drained(lives_of: _Lives) -> dict[int, Life]:
    """Lives in the loop of a persistent kernel over its tiles: what a tile stores last lives on until it has left."""
    return {sid: changed(life, drained=lives_of.line.drain(sid)) for sid, life in lives_of().items()}


def _ways(schedule: Schedule, level: Level, lives_of: _Lives) -> Iterator[dict[int, Life]]:
    """Lives of a persistent kernel's storages from tile to tile, the roomiest first: nothing waits for a place that it shares.

    Where loads for the next tile have places of their own, other buffers give up the slots for it rather than these.
    """
    while True:
        ways = [lives_of(apart=True)]
        ways += [_drained(lives_of)] if all(s.core == AIV for s, _ in schedule.walk()) else []
        if not schedule.own_places:
            yield from ways
            return
        yield from (_with_own_places(schedule, lives) for lives in (*ways, lifetimes(schedule)))
        turning = [s for s in schedule.storages.values() if s.level is level and s.ring == 0 and s.spare > 0]
        if not turning:
            return
        shrink(schedule, max(turning, key=lambda s: (s.slot_bytes, -s.id)))


def _with_own_places(schedule: Schedule, lives: dict[int, Life]) -> dict[int, Life]:
    """The same, but what can be loaded for the next tile has its place for itself all the time."""
    end = max((life.last for life in lives.values()), default=0)
    return lives | {load.dst: Life(0, end) for load in known_loads(schedule) if isinstance(load.dst, int)}


class _Closer(NamedTuple):
    """How storages may share places although something waits then, as `lifetimes` has it."""

    close: frozenset[int] = frozenset()
    inherited: bool = False
    tight: bool = False
    waiting: bool = True


def _closer(schedule: Schedule, level: Level, late: set[StorageId], line: _Line) -> list[_Closer]:
    """What might share a place although it meets another pipe than V: nothing, one of what leaves, all of that, then one storage
    more and more.

    What V makes and MTE3 stores has left long before the next trip comes to its place, what is made last in a trip rather than
    what is made before other work of V. Of the others the first is what stands behind a cross-core wait, and the last of it that
    a trip waits for.
    """
    able = [s for sid, s in schedule.storages.items() if s.level is level and line.events[sid] and line.crosses(sid)]
    able.sort(key=lambda s: (s.id not in late, -max(step.lag for _, _, step, _ in line.events[s.id]), -s.slot_bytes, s.id))
    leaving = sorted((s.id for s in able if line.leaves(s.id)), key=lambda sid: -line.events[sid][-1][0])
    one_more = (frozenset(s.id for s in able[:n]) for n in range(len(able) + 1))
    ways = (False, True) if schedule.steady else (False,)
    some = (*(frozenset({sid}) for sid in leaving), frozenset(leaving))
    closer = product((False, True), some if leaving else (), (False, True), ways)
    first = [_Closer(close, w, tight, waiting) for waiting, close, tight, w in closer]
    return list(dict.fromkeys((*(_Closer(inherited=w) for w in ways), *first, *(_Closer(close) for close in one_more))))


def _spare(schedule: Schedule, level: Level, ahead: set[StorageId]) -> Storage | None:
    """The ring of a level that misses a slot least; of several, the one with the largest slots.

    Those in `ahead`, loads that could run ahead, keep two slots.
    """
    able = [s for s in schedule.storages.values() if s.level is level and s.spare > 0 and not (s.id in ahead and s.slots <= 2)]
    missed = missing(schedule) if len(able) > 1 else {}
    return max(able, key=lambda s: (-missed.get(s.id, 0), s.slot_bytes, s.slots, -s.id), default=None)


class _Asked(NamedTuple):
    """What is asked of a placement: what comes `late`, behind a wait for other cores, may share a place first, loads that could
    run `ahead` keep their second buffer longest; `enforce`: a level's bytes are its limit; no more shares a place than of `like`.
    """

    late: set[StorageId]
    ahead: set[StorageId]
    enforce: bool
    like: Schedule | None


def assign(schedule: Schedule, chip: Chip, enforce: bool = True, like: Schedule | None = None) -> None:
    """Gives every storage its addresses, rings shrunk where they must be. Refused where a level is too small, or where more has
    to move closer than in the schedule that it shall be `like`."""
    fit_ids(schedule)
    schedule.crowded = 0
    late = {s.dst for s, _ in schedule.walk() if s.node.op.startswith("WsTo")}
    ahead = {s.dst for s, _ in schedule.walk() if s.node.op in STAGED} - late
    lives, asked = _Lives(schedule), _Asked(late, ahead, enforce, like)
    for level in ON_CHIP:
        refuse_closer(schedule, like)
        places, used = _place(schedule, chip, level, asked, lives)
        schedule.peaks[level] = used
        for sid, at in places.items():
            s = schedule.storages[sid]
            schedule.addresses[sid] = tuple(at + i * s.slot_bytes for i in range(s.slots))
    if schedule.steady:
        take_turns(schedule, chip)
    if schedule.copies > 1:
        _copy_ub(schedule, chip)
    _workspace(schedule, lifetimes(schedule))


def _copy_ub(schedule: Schedule, chip: Chip) -> None:
    """Lays out UB as often as there are copies, as many as there is room for; what is made once a block stays alone."""
    used, align = schedule.peaks[Level.UB], max(32, chip.align(Level.UB), 2 * chip.vector.repeat_bytes)
    kept = (s for i in kept_for_tiles(schedule) if (s := schedule.storages[i]).level is Level.UB)
    base = max((schedule.addresses[s.id][0] + s.bytes for s in kept), default=0)
    step = -(-(used - base) // align) * align
    schedule.copies = max(1, min(schedule.copies, (chip.level_bytes(Level.UB) - base) // max(1, step)))
    schedule.peaks[Level.UB] = used + (schedule.copies - 1) * step
    for sid, s in schedule.storages.items():
        if s.level is Level.UB and sid in schedule.addresses and sid not in schedule.once:
            at = schedule.addresses[sid][0]
            schedule.addresses[sid] = tuple(at + i * step for i in range(schedule.copies))


def _place(schedule: Schedule, chip: Chip, level: Level, asked: _Asked, lives_of: _Lives) -> tuple[dict[int, int], int]:
    """A place of its own for whatever crosses pipes where there is room, else as tight as lifetimes allow."""
    limit, (late, ahead, enforce, like) = chip.level_bytes(level), asked
    for lives in _ways(schedule, level, lives_of) if schedule.persistent else ():
        if may_fit(schedule, lives, level, limit) and (found := pack_apart(schedule, lives, level, chip, limit)).used <= limit:
            return found.places, found.used
    if enforce and _least_used(schedule, level, lives_of.line) > limit:
        while ring := _spare(schedule, level, set()):
            shrink(schedule, ring)
        raise overflow(schedule, lifetimes(schedule), level, limit)
    steps = _closer(schedule, level, late, lives_of.line)
    full: dict[int, Life] | None = None  # for these there is no room, with as many slots
    for able in (ahead, set[StorageId]()):  # loads that run ahead lose their second buffer last
        for step in steps:
            schedule.crowded += 1
            refuse_closer(schedule, like)
            while True:
                lives = lives_of(closer=step)
                if lives != full and (not enforce or may_fit(schedule, lives, level, limit)):
                    places, used, _ = pack_apart(schedule, lives, level, chip, limit)
                    if used <= limit or not enforce:
                        return places, used
                ring, full = _spare(schedule, level, able), lives
                if ring is None:
                    break
                shrink(schedule, ring)
                refuse_closer(schedule, like)
                full = None
    raise overflow(schedule, lifetimes(schedule), level, limit)


def _least_used(schedule: Schedule, level: Level, line: _Line) -> int:
    """Bytes of a level that are needed at one time when no buffer has a slot that it can miss."""
    held = [(s, s.slots, s.ring) for s in schedule.storages.values() if s.spare > 0]
    for s, slots, _ in held:
        s.slots = slots - s.spare
        s.ring = s.ring if s.slots > 1 else None
    lives = lifetimes(schedule, line=line)
    used = least_bytes([(a, schedule.storages[i].bytes) for i, a in lives.items() if schedule.storages[i].level is level])
    for s, slots, ring in held:
        s.slots, s.ring = slots, ring
    return used


def _workspace(schedule: Schedule, lives: dict[int, Life]) -> None:
    """Workspace storages one behind the other, each slot at a multiple of 512 bytes, the size that GM moves best."""
    at = 0
    for sid in sorted(lives):
        s = schedule.storages[sid]
        if s.level is Level.WS:
            step = -(-s.slot_bytes // LINE_BYTES) * LINE_BYTES
            schedule.addresses[sid] = tuple(at + i * step for i in range(s.slots))
            at += s.slots * step
    schedule.peaks[Level.WS] = at
