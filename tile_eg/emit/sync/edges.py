"""Edges: from dependences between instructions to flags at places in the text.

An edge is set behind its producer and waited for before its consumer; both ends are lifted out of the loops that they do not
share. Each id of an edge must be set and waited for in turns. An id whose first event is a wait is set once before everything;
one whose last event is a set is drained at the end. That holds for rings of any depth, lag and nesting; it is read off the trace.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from tile_eg.emit.sync.trace import Env, Instance, Layout, Path, Site, Trace, opaque
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.program import Instr, Loop, Node, Tasks, Tile, When, walk
from tile_eg.ops.records import record


class Turn(NamedTuple):
    """Where one flag is set and waited for, and by which of its edge's ids."""

    set_at: Site
    wait_at: Site
    set_id: Expr
    wait_id: Expr


@record
class Edge:
    """A directed flag: set on pipe `src` at one site, waited for by pipe `dst` at another, with `ids` ids.

    `before` and `drain` list the ids that are set ahead of the stream and waited for at its end, where they delay nothing. An
    `outer` edge guards the flags of another one: at a shared site it waits first and sets last. A `local` edge sets ahead and
    drains around its own items, so that others can have its ids before and after. `turns` are more pairs of sites that use the
    same ids, in turns with the first. A `tight` one stops the waiting pipe for what was set last.
    """

    core: str
    src: str
    dst: str
    set_at: Site
    wait_at: Site
    ids: int = 1
    set_id: Expr = ZERO
    wait_id: Expr = ZERO
    before: tuple[int, ...] = ()
    drain: tuple[int, ...] = ()
    outer: bool = False
    local: bool = False
    turns: tuple[Turn, ...] = ()
    tight: bool = False

    @property
    def places(self) -> tuple[Turn, ...]:
        """All pairs of sites."""
        return (Turn(self.set_at, self.wait_at, self.set_id, self.wait_id), *self.turns)

    @property
    def joined(self) -> bool:
        """Set and waited for at one place."""
        return self.set_at == self.wait_at


def along(nodes: Sequence[Node], path: Path) -> list[Node]:
    """The nodes of a stream on the way down to `path`, itself last."""
    out: list[Node] = []
    for at in path:
        out.append(nodes[at])
        nodes = out[-1].body if isinstance(out[-1], Loop | When) else ()
    return out


class Stream:
    """One core's nodes with its trace: finds places in it. `visits` are the steps at which each place comes, `runs` those of the
    instances."""

    def __init__(self, layout: Layout, core: str, trace: Trace) -> None:
        self.layout, self.core, self.trace = layout, core, trace
        self.nodes = layout.program.core(core)
        visits: defaultdict[Site, list[tuple[int, Env]]] = defaultdict(list)
        self.runs: list[int] = []
        for at, (site, env, n) in enumerate(trace.steps):
            if n < 0:
                visits[site].append((at, env))
            else:
                self.runs.append(at)
        self.visits = dict(visits)

    def along(self, path: Path) -> list[Node]:
        """The nodes on the way down to `path`, itself last."""
        return along(self.nodes, path)

    def hidden(self, path: Path) -> list[bool]:
        """For each node on the way: whether only run time decides if it runs."""
        loops = self.layout.named()
        out = []
        for n in self.along(path):
            out.append(isinstance(n, When) and opaque(n.condition, loops))
            if isinstance(n, Loop):
                loops = loops | {n.var: 0}
        return out

    def lift(self, path: Path, other: Path) -> Path:
        """The item that stands for `path` in the innermost region that it shares with `other`: no loop of its own around it.

        Where one contains the other, that is the one that contains.
        """
        inside = min(len(path), len(other)) - 1
        common = next((i for i, (a, b) in enumerate(zip(path, other, strict=False)) if a != b), inside)
        nodes, hidden = self.along(path), self.hidden(path)
        for depth in range(common, len(path)):
            if isinstance(nodes[depth], Loop) or hidden[depth]:
                return path[: depth + 1]
        return path

    def slot(self, path: Path, buffer: str, item: Path) -> Expr | None:
        """The slot of `buffer` that the instruction uses, if it is one expression that has a meaning at `item`."""
        i = self.along(path)[-1]
        assert isinstance(i, Instr)
        tiles = [o for o in (i.dst, *i.srcs, i.scratch) if isinstance(o, Tile) and o.buffer == buffer]
        loops = {n.var for n in self.along(item)[:-1] if isinstance(n, Loop)}
        slots = {t.slot for t in tiles}
        e = slots.pop()
        return e if not slots and ix.variables(e) <= loops else None

    def events(self, e: Edge) -> list[tuple[int, int, str, int]] | None:
        """(step, 0 for set and 1 for wait, its name, id) in program order, or None where an id is out of range."""
        out = [(at, 0, "set", self.layout.at(t.set_id, env)) for t in e.places for at, env in self.visits.get(t.set_at, ())]
        out += [(at, 1, "wait", self.layout.at(t.wait_id, env)) for t in e.places for at, env in self.visits.get(t.wait_at, ())]
        return None if any(not 0 <= k < e.ids for *_, k in out) else sorted(out)

    def completed(self, e: Edge) -> Edge | None:
        """The edge with the ids that need a set ahead and those that need a drain; None where ids do not take turns."""
        events = self.events(e)
        if events is None:
            return None
        last: dict[int, str] = {}
        ahead = []
        for _, _, kind, k in events:
            if last.get(k) == kind:
                return None
            if k not in last and kind == "wait":
                ahead.append(k)
            last[k] = kind
        return replace(e, before=tuple(sorted(ahead)), drain=tuple(sorted(k for k, kind in last.items() if kind == "set")))

    def for_next_tile(self, before: Instance, after: Instance) -> bool:
        """Whether an instruction works for the next tile, and stands before what needs it there. A flag from one to the other
        would be waited for in this tile; that of what needs it first, which stands before both, does for all."""
        turns = [i.env[t.var] for t in self.layout.tasks for i in (before, after) if t.var in i.env]
        return len(turns) > 1 and turns[0] < turns[-1] and before.path < after.path

    @cached_property
    def early(self) -> frozenset[Path]:
        """The places of the instructions that work for the next tile."""
        first: dict[tuple, tuple[Instance, Instance]] = {}
        for d in self.trace.dependences:
            a, b = self.trace.instances[d.before], self.trace.instances[d.after]
            first.setdefault((a.path, b.path, d.buffers), (a, b))
        return frozenset(a.path for a, b in first.values() if a.pipe != b.pipe and self.for_next_tile(a, b))

    @property
    def start(self) -> Site:
        return ("pre", (0,))

    @property
    def end(self) -> Site:
        return ("post", (len(self.nodes) - 1,))

    def ahead_of(self, e: Edge) -> Site:
        return ("pre", (min(site[1][0] for t in e.places for site in t[:2]),)) if e.local else self.start

    def behind(self, e: Edge) -> Site:
        return ("post", (max(site[1][0] for t in e.places for site in t[:2]),)) if e.local else self.end

    def sites(self, e: Edge) -> list[Site]:
        """Every place where a flag of the edge stands, in program order."""
        ends = ([self.ahead_of(e)] if e.before else [], [self.behind(e)] if e.drain else [])
        inner = (site for t in e.places for site in (t.set_at, t.wait_at))
        return [*ends[0], *sorted(inner, key=lambda site: self.visits[site][0][0]), *ends[1]]

    def in_turns(self, a: Edge, b: Edge) -> Edge | None:
        """One edge for two whose ids take turns, or None. Each leaves the ids as it found them, should it not run at all."""
        if (a.ids, a.outer) != (b.ids, b.outer):
            return None
        both = self.completed(replace(a, turns=(*a.turns, *b.places)))
        alike = both and a.before == b.before == both.before and a.drain == b.drain == both.drain
        return both if alike else None


def forward(s: Stream, before: Instance, after: Instance, buffers: tuple[str, str]) -> Edge | None:
    """The tightest edge for a dependence: one id a slot where both ends know the slot, else a single id.

    The slots that one loop fills and another one empties, trip by trip, are handed over in these trips, not behind the loop.
    """
    p, c = s.lift(before.path, after.path), s.lift(after.path, before.path)
    plain = Edge(s.core, before.pipe, after.pipe, ("post", p), ("pre", c))
    ids = s.layout.shared_slots(*buffers)
    for here, there in dict.fromkeys(((p, c), (before.path, after.path))) if ids > 1 else ():
        set_id, wait_id = s.slot(before.path, buffers[0], here), s.slot(after.path, buffers[1], there)
        made = replace(plain, set_at=("post", here), wait_at=("pre", there), ids=ids)
        if set_id and wait_id and (ring := s.completed(replace(made, set_id=set_id, wait_id=wait_id))) and _ends_alike(s, ring):
            return ring
    return s.completed(plain) or _around_guards(s, plain)


def _ends_alike(s: Stream, ring: Edge) -> bool:
    """Whether what is drained does not depend on how many tiles a block has, as it does where each sets an id for the next."""
    loops = [n for n in s.along(ring.set_at[1])[:-1] if isinstance(n, Loop)]
    return ring.set_id == ring.wait_id or not loops or not isinstance(loops[-1], Tasks)


def _around_guards(s: Stream, e: Edge) -> Edge | None:
    """The edge to or from a product that has a guard of its own, with both ends outside of their guards, as one may pass where
    the other one does not: so it is set and waited for in each trip of a skewed loop, its first and last ones included."""
    (_, p), (_, c) = e.set_at, e.wait_at
    common = next((i for i, (a, b) in enumerate(zip(p, c, strict=False)) if a != b), None)
    if common is None:
        return None
    ends = p[: common + 1], c[: common + 1]
    guards = [at for end in ends if isinstance(at := s.along(end)[-1], When)]
    if len(guards) < 2 or not any(map(_one_product, guards)) or len(s.visits["pre", p]) != len(s.visits["pre", c]):
        return None
    return s.completed(replace(e, set_at=("post", ends[0]), wait_at=("pre", ends[1])))


def in_turns(s: Stream, before: Instance, after: Instance, buffers: tuple[str, str]) -> list[Edge]:
    """For places in L0C that results take in turns: the edge outside of the guards of both ends, and one around their loop.

    Where results before the first trips or behind the last ones are left out, a place comes to one that is not the next in turn.
    Then what is set and waited for in every trip, for the next in turn, holds for that one too, as pipes keep their order.
    """
    if not {*buffers} <= s.layout.in_turns:
        return []
    p, c = before.path, after.path
    common = next(i for i, (a, b) in enumerate(zip(p, c, strict=False)) if a != b)
    loops = [p[: i + 1] for i, n in enumerate(s.along(p[:common])) if isinstance(n, Loop)]
    plain = Edge(s.core, before.pipe, after.pipe, ("post", p[: common + 1]), ("pre", c[: common + 1]))
    around = [replace(plain, set_at=("post", at), wait_at=("pre", at)) for at in loops[-1:]]
    found = [s.completed(e) for e in (plain, *around)]
    return [replace(e, tight=buffers[0] != buffers[1] and _tight(s, e)) for e in found if e]


def _tight(s: Stream, e: Edge) -> bool:
    """Whether the waiting pipe has nothing to do between any set and its wait."""
    busy = [at for at, i in zip(s.runs, s.trace.instances, strict=True) if i.pipe == e.dst]
    events = sorted(at for site in (e.set_at, e.wait_at) for at, _ in s.visits[site])
    between = zip(events, events[1:], strict=False)
    waits = {at for at, _ in s.visits[e.wait_at]}
    return not any(bisect(busy, b) > bisect(busy, a) for a, b in between if b in waits)


def _one_product(guard: When) -> bool:
    """Whether nothing else stands under a guard."""
    found = [n.op for n in walk(guard.body) if isinstance(n, Instr)]
    return found.count("mmad") == 1 and {*found} == {"l1_to_l0a", "l1_to_l0b", "mmad"}


def join(s: Stream, before: Instance, after: Instance) -> Edge:
    """The fallback that always takes turns: set and wait at one place, at the end that runs less often."""
    p, c = s.lift(before.path, after.path), s.lift(after.path, before.path)
    more = len(s.visits[("post", p)]) >= len(s.visits[("pre", c)])
    site: Site = ("pre", c) if more else ("post", p)
    made = s.completed(Edge(s.core, before.pipe, after.pipe, site, site))
    assert made is not None
    return made


def join_outside(s: Stream, before: Instance, after: Instance) -> Edge | None:
    """A join before the outermost guard around `after` whose outcome only run time knows; None where there is no such guard.

    What is ordered inside a guard says nothing behind it, where the guard may not have been passed.
    """
    hidden = s.hidden(after.path)
    if True not in hidden:
        return None
    site: Site = ("pre", after.path[: hidden.index(True) + 1])
    return s.completed(Edge(s.core, before.pipe, after.pipe, site, site))


def candidates(s: Stream) -> list[Edge]:
    """An edge for every dependence between two pipes of this core."""
    out: dict[Edge, None] = {}
    seen: set[tuple[Path, Path, tuple[str, str]]] = set()
    for d in s.trace.dependences:
        a, b = s.trace.instances[d.before], s.trace.instances[d.after]
        key = (a.path, b.path, d.buffers)
        if a.pipe != b.pipe and key not in seen:
            seen.add(key)
            if s.for_next_tile(a, b):
                continue
            taken = in_turns(s, a, b, d.buffers)
            out |= dict.fromkeys(taken or [forward(s, a, b, d.buffers) or join(s, a, b)])
    return list(out)


def reverse(s: Stream, e: Edge) -> Edge | None:
    """The edge that keeps `e` from being set again before its wait is over; None where a tile would wait for the next one's."""
    if e.wait_at[1] in s.early and e.wait_at[1] < e.set_at[1]:
        return None
    set_at: Site = ("pre" if e.set_at[1] in s.early else "post", e.wait_at[1])
    back = Edge(s.core, e.dst, e.src, set_at, ("pre", e.set_at[1]), outer=True)
    return s.completed(back)


@record
class Flag:
    """One flag in the text. `rank` orders what stands at one site: ahead, outer waits, sets, waits, outer sets, drains.

    An outer edge that is not set ahead itself waits before what is, and one that is not drained is set behind the drains: it may
    stand between the drains of one edge and what is set ahead of another one that has the same ids.
    """

    site: Site
    rank: int
    kind: str
    number: int
    edge: Edge
    id: Expr


def placed(s: Stream, edges: Mapping[int, Edge]) -> Iterator[Flag]:
    """Every flag in the text of these edges, which keep their numbers."""
    for n, e in edges.items():
        for k in e.before:
            yield Flag(s.ahead_of(e), 0, "set", n, e, ix.const(k))
        for t in e.places:
            yield Flag(t.set_at, _outer_set(e) if e.outer else 2, "set", n, e, t.set_id)
            yield Flag(t.wait_at, _outer_wait(e) if e.outer else 3, "wait", n, e, t.wait_id)
        for k in e.drain:
            yield Flag(s.behind(e), 5, "wait", n, e, ix.const(k))


def _outer_wait(e: Edge) -> int:
    return 1 if e.before else -1


def _outer_set(e: Edge) -> int:
    return 4 if e.drain else 6
