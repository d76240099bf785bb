"""Ids for edges: their own while there are enough of them, else shared by edges that follow one another.

A flag is one bit. Two edges may share an id where the first one's last wait is known to be over before the second one's first
set; where that is not known, an edge back is added that makes it so. Where too many are held at a time, rings get fewer ids than
slots, one edge serves for two, or two take turns with the same ids from trip to trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from tile_eg.emit.sync.clock import count
from tile_eg.emit.sync.edges import Edge, Stream, reverse
from tile_eg.emit.sync.fewer import with_fewer
from tile_eg.emit.sync.order import Order, Verdict
from tile_eg.emit.sync.trace import FlagsRunOut, Site
from tile_eg.errors import PlanError, plannable
from tile_eg.ir import machine
from tile_eg.ops.records import record

EVENT_IDS = len(machine.USABLE_EVENT_IDS)
Event = tuple[str, str, str]  # core, source pipe, waiting pipe


def event(e: Edge) -> Event:
    return e.core, e.src, e.dst


def allocate(
    streams: Mapping[str, Stream],
    edges: list[Edge],
    replayed: Callable[[], tuple[Order, Verdict]],
    sound: Callable[[], bool] | None = None,
) -> tuple[list[Edge], list[int]]:
    """The edges (perhaps changed, perhaps more of them) with the first id of each.

    `replayed` runs the program with `edges` as they are then, and `sound` says whether they order everything (None: no ring may
    have fewer ids than slots). FlagsRunOut names the event that needs too many ids. Flags back are for what has none otherwise.
    """
    kept = list(edges)
    found = plannable(lambda: _allocated(streams, edges, replayed, sound, backs=False))
    if isinstance(found, PlanError) and sound:
        edges[:] = kept
        return _allocated(streams, edges, replayed, sound, backs=True)
    if isinstance(found, PlanError):
        raise found
    return found


def _allocated(
    streams: Mapping[str, Stream],
    edges: list[Edge],
    replayed: Callable[[], tuple[Order, Verdict]],
    sound: Callable[[], bool] | None,
    backs: bool,
) -> tuple[list[Edge], list[int]]:
    if sound:
        for at in sorted(_crowded(edges)):
            _narrow(streams[at[0]], edges, at, sound, backs)
    for _ in range(4 * len(edges) + 4):
        crowded = _crowded(edges)
        if not crowded:
            return edges, _separate(edges)
        for n, e in enumerate(edges):
            if event(e) in crowded:
                edges[n] = replace(e, local=True)
        shared = _share(streams, edges, crowded, *replayed())
        if isinstance(shared, list):
            return edges, shared
        if isinstance(shared, Edge):
            edges.append(shared)
        elif not _merge(stream := streams[shared.at[0]], edges, shared.at) and not _in_turns(stream, edges, shared.at, replayed):
            raise shared.error()
    raise FlagsRunOut("flag ids run out: no sharing was found")


def _narrow(s: Stream, edges: list[Edge], crowded: Event, sound: Callable[[], bool], backs: bool) -> None:
    """Gives rings of an event fewer ids until there are enough, where everything is in order then.

    What frees their places comes first, as otherwise the first loads of a loop wait for nothing.
    """
    core, source, waiting = crowded
    for at in ((core, waiting, source), crowded):
        for n in [n for n, e in enumerate(edges) if event(e) == at]:
            if crowded in _crowded(edges):
                _with_fewer(s, edges, n, sound, backs)


def _with_fewer(s: Stream, edges: list[Edge], n: int, sound: Callable[[], bool], backs: bool) -> None:
    kept = list(edges)
    for changed in with_fewer(s, kept, n):
        for beside in _beside(s, changed[n], backs):
            edges[:] = [*(changed.get(m, e) for m, e in enumerate(kept)), *beside]
            if sound():
                return
    edges[:] = kept


def _beside(s: Stream, e: Edge, backs: bool) -> Iterator[tuple[Edge, ...]]:
    """What an edge with fewer ids may need beside it: nothing; or its reverse, where it frees places: with few trips its pipe has
    steps of the loop with nothing to do, and would set the flag again before its wait is over."""
    yield ()
    if backs and e.before and (back := reverse(s, e)):
        yield (back,)


@record
class _Crowd:
    """More edges of one event than there are ids hold one at a time."""

    at: Event
    edge: Edge

    def error(self) -> FlagsRunOut:
        core, source, waiting = self.at
        found = _run_out(f"{core} needs more than {EVENT_IDS} flag ids for {source}_{waiting} at a time", self.edge)
        found.at = self.at
        return found


def _run_out(what: str, e: Edge) -> FlagsRunOut:
    found = FlagsRunOut(what)
    found.place = e.core, e.wait_at[1]
    return found


def _merge(s: Stream, edges: list[Edge], crowded: Event) -> bool:
    """Lets one edge serve for two that are set one behind the other: set where the later one is, waited for where the first
    consumer is. A pipe does its instructions in order, so that both hold. The two that are set nearest to each other give way;
    False where there are none."""
    first = lambda site: s.visits[site][0][0]  # noqa: E731
    able = [e for e in edges if event(e) == crowded and not (e.outer or e.turns)]
    able.sort(key=lambda e: (_ring(e), first(e.set_at)))
    found: list[tuple[int, int, Edge, Edge, Edge]] = []
    for a, b in zip(able, able[1:], strict=False):
        wait_at = min(a.wait_at, b.wait_at, key=first)
        both = s.completed(replace(b, wait_at=wait_at)) if _ring(a) == _ring(b) else None
        together = len({len(s.visits[e.wait_at]) for e in (a, b, both or a)}) == 1 and b.set_at[1][:-1] == wait_at[1][:-1]
        if both and together and _ring(both) == _ring(b):
            found.append((first(b.set_at) - first(a.set_at), len(found), a, b, both))
    if not found:
        return False
    _, _, a, b, both = min(found)
    edges[edges.index(a)] = both
    edges.remove(b)
    return True


def _ring(e: Edge) -> tuple[object, ...]:
    """What two edges have in common that come round alike."""
    return e.ids, str(e.set_id), str(e.wait_id), e.before, e.drain


def _in_turns(s: Stream, edges: list[Edge], crowded: Event, replayed: Callable[[], tuple[Order, Verdict]]) -> bool:
    """Lets two edges of a loop take turns with their ids: each then waits for what was set last before it, so for more than it
    needs. Rings that free many ids go first, and what lies near each other; False where no two can."""
    first = lambda e: s.visits[s.sites(e)[0]][0][0]  # noqa: E731
    able = sorted((e for e in edges if event(e) == crowded), key=first)
    pairs = sorted(combinations(able, 2), key=lambda p: (-p[0].ids, first(p[1]) - first(p[0])))
    kept = list(edges)
    for a, b in pairs:
        both = s.in_turns(a, b)
        if both is None:
            continue
        edges[edges.index(a)] = both
        edges.remove(b)
        if not replayed()[1].faults:
            return True
        edges[:] = kept
    return False


def _crowded(edges: Sequence[Edge]) -> set[Event]:
    need: dict[Event, int] = {}
    for e in edges:
        need[event(e)] = need.get(event(e), 0) + e.ids
    return {at for at, n in need.items() if n > EVENT_IDS}


def _separate(edges: Sequence[Edge], only: Callable[[Edge], bool] = lambda e: True) -> list[int]:
    """Ids in program order, none shared."""
    out, used = [0] * len(edges), dict[Event, int]()
    for n, e in sorted(enumerate(edges), key=lambda p: (p[1].core, p[1].set_at[1], p[1].wait_at[1])):
        if only(e):
            out[n] = used.get(event(e), 0)
            used[event(e)] = out[n] + e.ids
    return out


@record
class _Life:
    """When an edge holds its ids: from step `first` to step `last`.

    `last_wait` is the number of its last wait, `known` how many waits are known to be over when it is set first.
    """

    number: int
    first: int
    last: int
    last_wait: int
    known: int


def _life(streams: Mapping[str, Stream], n: int, e: Edge, order: Order, verdict: Verdict) -> _Life:
    s = streams[e.core]
    steps = [at for site in s.sites(e) for at, _ in s.visits[site]]
    at = order.index[e.core, e.dst] + 1
    flags = [(n, k) for k in range(e.ids)]
    known = min((count(verdict.first_set[f], at) for f in flags if f in verdict.first_set), default=0)
    return _Life(
        n, min(steps), max(steps), max((verdict.last_wait[f] for f in flags if f in verdict.last_wait), default=0), known
    )


def _share(
    streams: Mapping[str, Stream], edges: Sequence[Edge], crowded: set[Event], order: Order, verdict: Verdict
) -> list[int] | Edge | _Crowd:
    """First ids, an edge that would make sharing safe where it is not yet, or what too many edges want at a time."""
    out = _separate(edges, lambda e: event(e) not in crowded)
    for at in sorted(crowded):
        lives = [_life(streams, n, e, order, verdict) for n, e in enumerate(edges) if event(e) == at]
        holders: list[list[_Life]] = [[] for _ in range(EVENT_IDS)]
        for life in sorted(lives, key=lambda x: (x.first, x.last)):
            e = edges[life.number]
            free = [base for base in range(EVENT_IDS - e.ids + 1) if _over(holders[base : base + e.ids], life)]
            if not free:
                return _Crowd(at, e)
            safe = [base for base in free if _known(holders[base : base + e.ids], life)]
            base = min(safe or free, key=lambda b: max((h[-1].last for h in holders[b : b + e.ids] if h), default=-1))
            if not safe:
                late = max((h[-1] for h in holders[base : base + e.ids] if h), key=lambda x: x.last_wait)
                return _back(streams[e.core], edges[late.number], e)
            for h in holders[base : base + e.ids]:
                h.append(life)
            out[life.number] = base
    return out


def _over(held: Sequence[list[_Life]], life: _Life) -> bool:
    return all(not h or h[-1].last < life.first for h in held)


def _known(held: Sequence[list[_Life]], life: _Life) -> bool:
    return all(not h or h[-1].last_wait <= life.known for h in held)


def _back(s: Stream, earlier: Edge, later: Edge) -> Edge:
    """From the earlier edge's last wait to the later one's first set."""
    first, last = s.sites(later)[0][1], s.sites(earlier)[-1][1]
    source, target = s.lift(last, first), s.lift(first, last)
    set_at: Site = earlier.wait_at if source == earlier.wait_at[1] and not earlier.drain else ("post", source)
    wait_at: Site = later.set_at if target == later.set_at[1] and not later.before else ("pre", target)
    made = s.completed(Edge(s.core, later.dst, later.src, set_at, wait_at, outer=True))
    if made is None:
        raise _run_out(f"flag ids run out for {later.src}_{later.dst}", later)
    return made
