"""Whether the flags of two streams hold in the order in which these were put, and order all that one core hands to the other.

The statements are gone through as they stand, trip by trip, for one block: each wait has to come behind its set, and of two
accesses of different cores to the same part of a tensor, of which one writes, the later one behind a flag that the other core set
behind the earlier one. Then every run of the two streams gives what this order gives.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.python.values import nodes as nodes_of
from tile_eg.frontend.sequential.blocks import some_blocks
from tile_eg.frontend.sequential.parts import Done, Mark, Node, does, marks, unordered
from tile_eg.ir import index as ix
from tile_eg.ir.index import Interval
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Assign, For, If, Parallel, Region
from tile_eg.ir.program import AIC, AIV

OTHER = {AIC: AIV, AIV: AIC}
MOST = 200_000
"""Statements that are gone through, at most."""
ANYWHERE = (0, 1 << 60)
Box = tuple[Interval, ...]


def check_handovers(
    nodes: Sequence[Node], ranges: Mapping[str, Interval], written: frozenset[str], half: str | None
) -> None:
    """TileError where a flag is not set when it is waited for, or two accesses have no flag between them."""
    sets = [m for m in marks(tuple(nodes)) if not m.waits]
    for fixed in some_blocks(ranges, nodes):
        _Walk(written, {half: (0, 1)} if half else {}, sets).run(nodes, fixed)


@dataclass
class _Walk:
    """`clock` counts what each core has done, `seen` is how much of the other one's it knows to be done."""

    written: frozenset[str]
    free: Mapping[str, Interval]
    sets: Sequence[Mark]
    clock: dict[str, int] = field(default_factory=lambda: {AIC: 0, AIV: 0})
    seen: dict[str, int] = field(default_factory=lambda: {AIC: 0, AIV: 0})
    flags: dict[tuple[int, str], deque[int]] = field(default_factory=lambda: defaultdict(deque))
    accesses: dict[tuple[str, str, bool, Box], tuple[int, Span | None]] = field(default_factory=dict)
    steps: int = 0

    def run(self, nodes: Sequence[Node], env: Mapping[str, int]) -> None:
        for n in nodes:
            match n:
                case Mark():
                    self.mark(n, env)
                case Done():
                    self.statement(n, env)
                case For():
                    count = n.extent if n.count is None else ix.evaluate(n.count, env)
                    for v in range(n.start, n.start + count) if self.matters(n) else ():
                        self.run(n.body, {**env, n.var: v})
                case If():
                    self.branch(n, env)

    def matters(self, n: Node) -> bool:
        return any(True for _ in marks(n)) or any(r.name in self.written for r in nodes_of(n) if isinstance(r, Region))

    def branch(self, n: If, env: Mapping[str, int]) -> None:
        if ix.variables(n.condition) - env.keys() or elements_in(n.condition):
            return self.run((*n.then, *n.otherwise), env)
        return self.run(n.then if ix.evaluate(n.condition, env) else n.otherwise, env)

    def mark(self, n: Mark, env: Mapping[str, int]) -> None:
        assert n.core is not None
        number = ix.evaluate(n.number, env)
        if not n.waits:
            self.flags[number, OTHER[n.core]].append(self.clock[n.core])
            return
        if not (found := self.flags[number, n.core]):
            raise self.unset(n, number, env)
        self.seen[n.core] = max(self.seen[n.core], found.popleft())

    def unset(self, n: Mark, number: int, env: Mapping[str, int]) -> TileError:
        """What is told of a wait that has no set before it, with the sets behind it."""
        assert n.core is not None
        at = ", ".join(f"{v} = {env[v]}" for v in env)
        numbers = [(m, m.number.value) for m in self.sets if m.core == OTHER[n.core]]
        places = [m.span for m, value in numbers if value in (None, number)]
        notes = tuple((f"{does(OTHER[n.core], 'set')} it here, behind what waits for this", span) for span in places[:1])
        none = "" if places else ": nothing sets it"
        return unordered(f"{does(n.core, 'wait')} here for flag {number}, which is not set by then ({at}){none}", n.span, notes)

    def statement(self, n: Done, env: Mapping[str, int]) -> None:
        self.steps += 1
        if self.steps > MOST:
            raise unordered(f"there are more than {MOST} statements to be held against their flags", n.statement.span)
        self.clock[n.core] += 1
        for region, writes, ranges in _accesses(n.statement, {**{v: (k, k) for v, k in env.items()}, **self.free}):
            if region.name in self.written:
                self.access(n, region, writes, box_of(region, ranges))

    def access(self, n: Done, region: Region, writes: bool, box: Box) -> None:
        place = region.span or n.statement.span
        for (name, core, wrote, other), (clock, span) in self.accesses.items():
            apart = name != region.name or core == n.core or not (writes or wrote)
            if not apart and clock > self.seen[n.core] and _meet(box, other):
                before, now = ("written" if wrote else "read"), ("write" if writes else "read")
                raise unordered(
                    f"{does(n.core, now)} `{name}` here, and no flag says that {does(core, 'have')} {before} it by then",
                    place, ((f"it is {before} here", span),),
                )  # fmt: skip
        self.accesses[region.name, n.core, writes, box] = (self.clock[n.core], place)


def _accesses(s: Any, ranges: Mapping[str, Interval]) -> Iterator[tuple[Region, bool, Mapping[str, Interval]]]:
    """The windows that a statement reads and writes, and what the variables in them may be."""
    if isinstance(s, Parallel):
        inside = {**ranges, **{v: (0, n - 1) for v, n in zip(s.vars, s.extents, strict=True)}}
        for a in s.body:
            yield from _accesses(a, inside)
    elif isinstance(s, Assign):
        yield from ((r, False, ranges) for r in nodes_of(s.value) if isinstance(r, Region))
        yield s.target, True, ranges


def box_of(r: Region, ranges: Mapping[str, Interval]) -> Box:
    """The least box that holds a window, wherever it begins."""
    found = []
    for start, extent in zip(r.starts, r.extents, strict=True):
        if ix.variables(start) - ranges.keys() or elements_in(start):
            found.append(ANYWHERE)
            continue
        low, high = ix.bounds(start, ranges)
        found.append((low, high + ((extent or 1) - 1) * r.step))
    return tuple(found)


def _meet(a: Box, b: Box) -> bool:
    return all(x[0] <= y[1] and y[0] <= x[1] for x, y in zip(a, b, strict=True))
