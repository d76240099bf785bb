"""Flag ids: every buffer of a ring takes one id for each direction between two pipes, and there are few."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tile_eg.extract.buffers import Buffer, busy, decided, depth_of, uncovered
from tile_eg.extract.schedule import Schedule, Storage
from tile_eg.ir.machine import USABLE_EVENT_IDS
from tile_eg.ops.physical import AIV, MOVES


def fit_ids(schedule: Schedule) -> None:
    """Makes rings shallower until the ids of every pair of pipes suffice; a ring as deep as its skew needs stays.

    What comes through the workspace goes first: its load stands behind a cross-core wait and cannot run ahead anyway.
    """
    shared = _sharing(schedule)
    for group in _crossings(schedule).values():
        once = {s.id for s in group if schedule.joined and s.ring == 0}
        while _ids(group, shared, once) > len(USABLE_EVENT_IDS) and (ring := _deepest(schedule, group)):
            shrink(schedule, ring)


def shallower(schedule: Schedule, between: tuple[str, str, str] | None = None) -> bool:
    """Takes one copy of UB from a persistent kernel, else one slot from the deepest ring that can miss it; False without any.

    `between` are the core and the two pipes that lack ids: rings that one of these fills and the other one reads go first, as no
    other one has ids of theirs. A slot that its author asked for is taken last, and only where the schedule is yielding.
    """
    if schedule.copies > 1:
        schedule.copies -= 1
        return True
    ring = _deepest(schedule, _filled_between(schedule, *between)) if between else None
    ring = ring or _deepest(schedule, schedule.storages.values())
    if ring is None and schedule.yielding:
        given = [s for s in schedule.storages.values() if s.given and s.slots > s.least]
        ring = max(given, key=lambda s: (s.slots, s.slot_bytes, -s.id), default=None)
    if ring:
        shrink(schedule, ring)
    return ring is not None


def _filled_between(schedule: Schedule, core: str, one: str, other: str) -> list[Storage]:
    """The storages that one of two pipes of a core fills and the other one reads."""
    found = _crossings(schedule)
    pipes = f"{core}.{one}", f"{core}.{other}"
    return [*found.get(pipes, ()), *found.get(pipes[::-1], ())]


def _ids(group: list[Storage], shared: set[int], once: set[int]) -> int:
    """One a buffer, but for what is `shared` and what comes `once` a tile in a loop that goes on, and one to hand places over
    from each loop's rings to the next loop's.

    Scales are loaded and read with their operands, whose flags serve both.
    """
    loops = {s.ring for s in group if s.slots > 1 and s.id not in once}
    own = [s for s in group if (s.slots > 1 or s.id not in shared) and not s.dtype.scale]
    return sum(1 if s.id in once else s.depth for s in own) + max(0, len(loops) - 1)


def _sharing(schedule: Schedule) -> set[int]:
    """Tiles that are moved outside of loops, whose flags can be those of a loop's tiles.

    Not where a loop has the cube core's steps, unless loads run `ahead`: there, ids that run out after all are taken from rings
    that are missed more.
    """
    steps = [(step.dst, step.core, around) for step, around in schedule.walk()]
    if not schedule.ahead and any(core != AIV and around for _, core, around in steps):
        return set()
    return {sid for sid, _, around in steps if not around and isinstance(sid, int)}


def _deepest(schedule: Schedule, group: Iterable[Storage]) -> Storage | None:
    able = [s for s in group if s.spare > 0 and s.id not in schedule.turns]
    missed = missing(schedule) if len(able) > 1 else {}
    return max(able, key=lambda s: (s.ring == 0, -missed.get(s.id, 0), s.slots, s.slot_bytes, s.ring or 0, -s.id), default=None)


def missing(schedule: Schedule) -> dict[int, int]:
    """By how many cycles the loop of each buffer takes longer with one slot less of it, as the search model has it.

    None for what comes through the workspace: its load stands behind a cross-core wait and cannot run ahead anyway.
    """
    pipes: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    held: dict[int, dict[int, Buffer]] = defaultdict(dict)
    for step, around in schedule.walk():
        if around:
            loop = around[-1].loop
            pipes[loop][step.pipe] += step.cycles
            for s in (schedule.storages[x] for x in (step.dst, *step.srcs) if isinstance(x, int)):
                if s.decisions and s.ring == loop and decided(step.node) in {d.cls for d in s.decisions}:
                    out_of = MOVES[step.node.op].empties
                    held[loop][s.id] = Buffer(s.depth, step.pipe, step.cycles, s.ahead, out_of, refill=schedule.refill)
    late = {s.dst for s, _ in schedule.walk() if s.node.op.startswith("WsTo")}
    out = {}
    for loop, found in held.items():
        now = _trip(pipes[loop], found)
        for sid, b in found.items():
            fewer = found | {sid: b._replace(depth=b.depth - 1)}
            out[sid] = 0 if sid in late else (_trip(pipes[loop], fewer) - now) * schedule.graph.total_trips(loop)
    return out


def _trip(pipes: dict[str, int], held: dict[int, Buffer]) -> int:
    return max(busy(pipes, held.values()).values()) + uncovered(pipes, held.values())


def shrink(schedule: Schedule, ring: Storage) -> None:
    """Takes one slot from a ring: another decision."""
    ring.slots -= 1
    if ring.slots == 1:
        ring.ring = None
    schedule.shrunk += 1
    decide(schedule, ring)


def decide(schedule: Schedule, held: Storage) -> None:
    """Makes the schedule's decisions about a storage say what it has; where a lag makes it deeper than is offered, they stay."""
    new = {d: next((m for m in schedule.graph.classes[d.cls] if depth_of(m) == held.depth), d) for d in held.decisions}
    if any(new[d] is not d for d in new):
        held.decisions = tuple(new.values())
        schedule.nodes = [new.get(n, n) for n in schedule.nodes]


def _crossings(schedule: Schedule) -> dict[tuple[str, str], list[Storage]]:
    """Storages of one core that are written on one pipe and read on another, by that pair; only those that loops use."""
    writers: dict[int, set[str]] = defaultdict(set)
    readers: dict[int, set[str]] = defaultdict(set)
    looped: set[int] = set()
    for step, around in schedule.walk():
        for sid, pipes in [(step.dst, writers), *((s, readers) for s in step.srcs)]:
            if isinstance(sid, int):
                pipes[sid].add("AIC.MTE1" if pipes is readers and step.pipe == "AIC.M" else step.pipe)
                looped |= {sid} if around or schedule.persistent else set()
    out: dict[tuple[str, str], list[Storage]] = defaultdict(list)
    for sid in sorted(looped):
        for w in sorted(writers[sid]):
            for r in sorted(readers[sid]):
                if w != r and w[:3] == r[:3]:
                    out[w, r].append(schedule.storages[sid])
    return out
