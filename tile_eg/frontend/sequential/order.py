"""Two streams of statements, of the cube core and of the vector cores, as one: in an order in which the flags between them hold.

Flags say which statements of one core come behind which of the other. The order is looked for loop by loop: statements stand in
the order of their own core, a wait behind its set; where both cores stand before loops in which they wait for one another, the
two loops become one. What is found is held against every flag and every access afterwards (`handovers.py`), so that it may be
guessed here what a flag of an earlier trip lets through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from tile_eg.errors import TileError, attempted
from tile_eg.frontend.python.tile_loops import substituted
from tile_eg.frontend.sequential.handovers import check_handovers
from tile_eg.frontend.sequential.parts import Done, Mark, Node, Scoped, does, marks, unordered
from tile_eg.ir import index as ix
from tile_eg.ir.index import Interval
from tile_eg.ir.kernel import Alloc, For, If, Stmt
from tile_eg.ir.program import AIC, AIV

OTHER = {AIC: AIV, AIV: AIC}
TRIPS = (2, 0)
"""Which trip of a loop says in what order its statements stand: one in the midst of it, or its first."""


def stream_of(
    nodes: Sequence[Node], core: str, owner: Callable[[Stmt], str], alike: Collection[tuple[str, ix.Expr]] = ()
) -> Iterator[Node]:
    """What one kind of core does; `owner` says whose a statement outside of scopes is. Flags that cores of one kind set for one
    another (`alike`) order nothing between the two kinds."""
    for n in nodes:
        match n:
            case Alloc():
                continue
            case Scoped():
                if n.core == core:
                    yield from stream_of(n.body, core, lambda s: core, alike)
            case Mark():
                if n.core == core and (core, n.number) not in alike:
                    yield n
            case For():
                if body := tuple(stream_of(n.body, core, owner, alike)):
                    yield replace(n, body=body)
            case If():
                then, otherwise = (tuple(stream_of(arm, core, owner, alike)) for arm in (n.then, n.otherwise))
                if then or otherwise:
                    yield replace(n, then=then, otherwise=otherwise)
            case _:
                if owner(n) == core:
                    yield Done(core, n)


def in_one_order(
    streams: Mapping[str, Sequence[Node]], ranges: Mapping[str, Interval], written: frozenset[str], half: str | None
) -> tuple[Node, ...]:
    """Both streams in one order. TileError: no order is known in which all flags hold, or no flag orders two accesses."""

    def checked(merge: _Merge) -> tuple[Node, ...]:
        found = tuple(merge.merged(streams, {}, Counter()))
        check_handovers(found, ranges, written, half)
        return found

    faults: list[TileError] = []
    for whole, trip, prefer in product((False, True), TRIPS, (AIC, AIV)):
        merge = _Merge(ranges, trip, prefer, whole)
        found = attempted(lambda: checked(merge))  # noqa: B023
        if not isinstance(found, TileError):
            return found
        faults.append(found)
    raise faults[0]


class _Unset(Exception):
    """A flag is waited for that is not set."""


@dataclass
class _Merge:
    """The merging of two streams; `prefer` goes on first where both wait for a flag that an earlier trip has set. `whole`: a loop
    whose flags are all set runs to its end, before it is made one with a loop of the other core."""

    ranges: Mapping[str, Interval]
    trip: int
    prefer: str
    whole: bool
    depth: int = 0

    def merged(self, streams: Mapping[str, Sequence[Node]], env: Mapping[str, int], flags: Counter[Any]) -> Iterator[Node]:
        left = {core: list(nodes) for core, nodes in streams.items()}
        while left[AIC] or left[AIV]:
            took = [n for core in (AIC, AIV) for n in self.ready(left, core, env, flags)]
            if took:
                yield from took
            elif self.whole and (alone := self.alone(left, env, flags)) is not None:
                yield alone
            elif (together := self.together(left, env, flags)) is not None:
                yield together
            else:
                yield self.one(left, env, flags)

    def ready(self, left: Mapping[str, list[Node]], core: str, env: Mapping[str, int], flags: Counter[Any]) -> Iterator[Node]:
        """What a core can do before it stands at a flag that is not set, or before a loop or branch with flags."""
        mine = left[core]
        while mine:
            n = mine[0]
            if isinstance(n, Mark):
                if n.waits and not flags[self.key(n, env)]:
                    return
                flags[self.key(n, env)] += -1 if n.waits else 1
            elif any(True for _ in marks(n)):
                return
            yield mine.pop(0)

    def key(self, n: Mark, env: Mapping[str, int]) -> tuple[int, str]:
        """A counter: its number, and who waits for it."""
        assert n.core is not None
        return self.number(n.number, env), n.core if n.waits else OTHER[n.core]

    def number(self, e: ix.Expr, env: Mapping[str, int]) -> int:
        known = {v: env.get(v, self.ranges.get(v, (0, 0))[0]) for v in ix.variables(e)}
        return ix.evaluate(e, known)

    def alone(self, left: Mapping[str, list[Node]], env: Mapping[str, int], flags: Counter[Any]) -> Node | None:
        """A loop or branch of one core that need not wait for the other one."""
        for core in (self.prefer, OTHER[self.prefer]):
            if left[core] and not isinstance(left[core][0], Mark) and self.runs(left[core][0], env, flags):
                return left[core].pop(0)
        return None

    def runs(self, n: Node, env: Mapping[str, int], flags: Counter[Any]) -> bool:
        """Whether all flags that a node waits for are set; they then are as it leaves them."""
        after = Counter(flags)
        try:
            self.count((n,), env, after, strict=True)
        except _Unset:
            return False
        flags.clear()
        flags.update(after)
        return True

    def together(self, left: Mapping[str, list[Node]], env: Mapping[str, int], flags: Counter[Any]) -> Node | None:
        """Two loops, or two branches, that wait for one another, as one."""
        if not (left[AIC] and left[AIV]):
            return None
        a, b = left[AIC][0], left[AIV][0]
        if isinstance(a, If) and isinstance(b, If) and a.condition == b.condition:
            arms = [tuple(self.merged({AIC: x, AIV: y}, env, flags)) for x, y in ((a.then, b.then), (a.otherwise, b.otherwise))]
            made: Node = replace(a, then=arms[0], otherwise=arms[1])
        elif isinstance(a, For) and isinstance(b, For) and a.count == b.count:
            made = self.loop(a, b, env, flags)
        else:
            return None
        del left[AIC][0], left[AIV][0]
        return made

    def loop(self, a: For, b: For, env: Mapping[str, int], flags: Counter[Any]) -> For:
        """One loop over the trips of both; the shorter one's statements are left out of the others."""
        env_b: Mapping[str, ix.Expr] = {b.var: ix.var(a.var) + (b.start - a.start)}
        bodies = {AIC: a.body, AIV: b.body if a.var == b.var and a.start == b.start else substituted(b.body, env_b)}
        extent = max(a.extent, b.extent)
        for core, one in ((AIC, a), (AIV, b)):
            if one.extent < extent:
                bodies[core] = (If(ix.less(ix.var(a.var) - a.start, one.extent), bodies[core], (), one.span),)
        inside = {**env, a.var: a.start + min(self.trip, extent - 1)}
        self.depth += 1
        body = tuple(self.merged(bodies, inside, Counter(flags)))
        self.depth -= 1
        stages = a.stages if a.kind == b.kind == "pipelined" and a.stages == b.stages else 0
        made = replace(a, extent=extent, kind="serial" if "serial" in (a.kind, b.kind) else a.kind, stages=stages, body=body)
        self.count((made,), env, flags)
        return made

    def one(self, left: Mapping[str, list[Node]], env: Mapping[str, int], flags: Counter[Any]) -> Node:
        """What one core does, though it stands at a flag: one that an earlier trip has set."""
        for core in (self.prefer, OTHER[self.prefer]):
            if left[core] and not self.awaited(left[core][0], left[OTHER[core]], env):
                n = left[core].pop(0)
                self.count((n,), env, flags)
                return n
        for core in (self.prefer, OTHER[self.prefer]):
            if left[core] and self.depth:
                n = left[core].pop(0)
                self.count((n,), env, flags)
                return n
        waiting = [(core, next(m for m in marks(left[core][0]) if m.waits)) for core in (AIC, AIV) if left[core]]
        (core, wait), *others = waiting
        told = tuple((f"and {does(c, 'wait')} here", m.span) for c, m in others)
        raise unordered(f"{does(core, 'wait')} here for a flag that nothing before it has set", wait.span, told)

    def awaited(self, n: Node, others: Sequence[Node], env: Mapping[str, int]) -> bool:
        """Whether a node waits for a flag that the other core sets further on."""
        sets = {self.key(m, env) for m in marks(tuple(others)) if not m.waits}
        return any(m.waits and self.key(m, env) in sets for m in marks(n))

    def count(self, nodes: Sequence[Node], env: Mapping[str, int], flags: Counter[Any], strict: bool = False) -> None:
        """Notes what the flags of some nodes leave. `strict`: raises _Unset where one is not set in time."""
        for n in nodes:
            match n:
                case Mark():
                    key = self.key(n, env)
                    if strict and n.waits and not flags[key]:
                        raise _Unset
                    flags[key] = max(0, flags[key] + (-1 if n.waits else 1))
                case For():
                    for v in range(n.start, n.start + n.extent) if any(True for _ in marks(n)) else ():
                        self.count(n.body, {**env, n.var: v}, flags, strict)
                case If() if any(True for _ in marks(n)):
                    self.count(n.then if self.number(n.condition, env) else n.otherwise, env, flags, strict)
