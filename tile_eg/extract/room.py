"""Bytes that are live at the least while an instruction runs, in any order: what it works on, and what was there before and is
read behind it. A choice of which these do not fit needs no order and no addresses to be refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.buffers import decided, depth_of, place_of, trips_in
from tile_eg.extract.needs import in_all_ways, members, needs_of, readers_of
from tile_eg.ops.physical import ALIASES, STRUCTURE, VECTOR
from tile_eg.ops.types import Level

LEVELS = (Level.L1, Level.UB, Level.L0C)
Bytes = Callable[..., int]


class Live(NamedTuple):
    """A value that was there before an instruction, and lives on where one of the `readers` is chosen, or one of the `classes` is
    used: those are computed by one of them, whichever nodes are chosen. `always`: so is every schedule."""

    bytes: int
    readers: tuple[Node, ...]
    classes: tuple[int, ...]
    always: bool


class Full(NamedTuple):
    """While `node` runs, its `own` operands and result are live, and what is in `live`: more together than the `limit`."""

    node: Node
    own: int
    live: tuple[Live, ...]
    limit: int


def overfull(graph: Graph, chip: Chip, slot_bytes: Bytes) -> Iterator[Full]:
    """The instructions beside which there may be more live than there is room for."""
    for level in LEVELS:
        yield from _Room(graph, level, chip.level_bytes(level), slot_bytes).full()


def always_read(graph: Graph) -> Iterator[tuple[int, set[int]]]:
    """Of each class the classes that each of its nodes reads."""
    return ((c, set.intersection(*({*n.children} for n in nodes))) for c, nodes in graph.classes.items())


def used_with(graph: Graph) -> Iterator[tuple[int, int]]:
    """The classes of several nodes, each with one that all of these read, so that it is used where the first is."""
    several = ((cls, read) for cls, read in always_read(graph) if len(graph.classes[cls]) > 1)
    return ((cls, c) for cls, read in several for c in sorted(read))


class _Room:
    """One level. A value is a class that only instructions make: others may lie in a place that is counted already."""

    def __init__(self, graph: Graph, level: Level, limit: int, slot_bytes: Bytes) -> None:
        self.graph, self.level, self.limit, self.needs = graph, level, limit, needs_of(graph)
        self.slot_bytes = slot_bytes
        self.bytes = {c: slot_bytes(graph.demands[c]) for c, nodes in graph.classes.items() if self._counts(c, nodes, level)}

    def _counts(self, cls: int, nodes: list[Node], level: Level) -> bool:
        place = self.graph.demands.get(cls)
        if place is None or place.level is not level:
            return False
        return not any(n.op in ALIASES or n.op in STRUCTURE or (n.op in VECTOR and VECTOR[n.op].row_bytes) for n in nodes)

    def full(self) -> Iterator[Full]:
        if sum(self.bytes.values()) + sum({n.children[0]: size for n, _, size in self._held}.values()) <= self.limit:
            return
        found: list[tuple[Node, int, dict[int, list[Node]], list[Live]]] = []
        for n in self.graph.nodes:
            own = self._own(n)
            held = self._held_beside(n) if own else {}
            live = {v: readers for v, readers in self._live(n).items() if v not in held} if own else {}
            if own + sum(self.bytes[v] for v in live) + sum(s.bytes for s in held.values()) > self.limit:
                found.append((n, own, live, list(held.values())))
        asked = list({tuple(readers): None for _, _, live, _ in found for readers in live.values()})
        bits = {readers: 1 << i for i, readers in enumerate(asked)}
        by_class = self._computed_by(bits)
        used = {readers: self._live_with(readers, bit, by_class) for readers, bit in bits.items()}
        for n, own, live, kept in found:
            lives = (Live(self.bytes[v], tuple(readers), *used[tuple(readers)]) for v, readers in live.items())
            yield Full(n, own, (*lives, *kept), self.limit)

    @cached_property
    def _held(self) -> list[tuple[Node, tuple[int, ...], int]]:
        """The nodes with which a value is there all through loops, these loops, and its bytes: what was made before a loop that
        reads it in each trip, and what stays from one loop to a later one, with the fewest buffers that it may have."""
        out = [(n, n.payload[:1], self.bytes.get(n.children[0], 0)) for n in self.graph.nodes if n.op == "Keep"]
        stays = (n for n in self.graph.nodes if n.op == "Stays" and n.payload[0] != n.payload[1])
        out += [(n, n.payload, self._of_all_trips(n.children[0], n.payload[1])) for n in stays]
        return [held for held in out if held[2]]

    def _of_all_trips(self, cls: int, loop: int) -> int:
        """The bytes of a buffer for each trip of the loop that loads a class; 0 where it lies in another memory."""
        decisions = (d for m in self.graph.classes[cls] if (c := decided(m)) is not None for d in self.graph.classes[c])
        enough = [d for d in decisions if place_of(d).level is self.level and depth_of(d) >= self.graph.trips[loop]]
        return min((depth_of(d) * self.slot_bytes(place_of(d), trips_in(d)) for d in enough), default=0)

    def _held_beside(self, n: Node) -> dict[int, Live]:
        """What loops around a node hold beside what it reads and makes itself: by class, as much as the least way to hold it."""
        around, own = {*self.graph.ancestors(n.region)}, {n.cls, *n.children} & self.bytes.keys()
        found: dict[int, list[tuple[Node, int]]] = defaultdict(list)
        for holding, loops, size in self._held:
            if around & {*loops} and holding.children[0] not in own:
                found[holding.children[0]].append((holding, size))
        return {cls: Live(min(size for _, size in ways), tuple(m for m, _ in ways), (), False) for cls, ways in found.items()}

    def _live_with(self, readers: tuple[Node, ...], bit: int, by_class: list[int]) -> tuple[tuple[int, ...], bool]:
        """The classes that some of these nodes compute in part, and all in the end; and whether the whole kernel is one. A class
        that always reads another such class is left out: that one is used where it is."""
        partly = {m.cls for m in readers}
        partly |= {n.cls for n in self.graph.nodes if any(by_class[c] & bit for c in n.children)}
        first = (c for c in sorted(partly) if by_class[c] & bit and not any(by_class[k] & bit for k in self._always_read[c]))
        return tuple(first), bool(by_class[self.graph.root] & bit)

    @cached_property
    def _always_read(self) -> dict[int, set[int]]:
        return dict(always_read(self.graph))

    def _computed_by(self, bits: dict[tuple[Node, ...], int]) -> list[int]:
        """For each class the sets of nodes, by their bits, of which any way to compute it has one."""
        own: dict[Node, int] = defaultdict(int)
        for readers, bit in bits.items():
            for m in readers:
                own[m] |= bit
        return in_all_ways(self.graph, own)

    def _own(self, n: Node) -> int:
        """What it reads, and what it writes unless that may lie in the place of something that it reads."""
        if n.op in ALIASES or n.op in STRUCTURE:
            return 0
        read = {c for c in n.children if c in self.bytes}
        total, result = sum(self.bytes[c] for c in read), self.bytes.get(n.cls, 0)
        in_place = n.op in VECTOR and VECTOR[n.op].in_place and any(self.bytes[c] == result for c in read)
        return total if in_place else total + result

    def _live(self, n: Node) -> dict[int, list[Node]]:
        """The values that are live while a node runs where one of these reads them: made before it, and read behind it."""
        before, made, needed = self.needs.of(n) & self._made_in[n.region], 1 << n.cls, self.needs.of_node
        out = {v: [m for m in self._readers[v] if needed[m.index] & made] for v in members(before) if v not in n.children}
        return {v: behind for v, behind in out.items() if behind}

    @cached_property
    def _made_in(self) -> dict[int, int]:
        """The values of each region, as the bits of a number."""
        out: dict[int, int] = defaultdict(int)
        for v in self.bytes:
            out[self.graph.classes[v][0].region] |= 1 << v
        return out

    @cached_property
    def _readers(self) -> dict[int, list[Node]]:
        readers = readers_of(self.graph)
        return {v: readers[v] for v in self.bytes}
