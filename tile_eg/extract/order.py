"""The order of issue: data and anti-dependences of a choice, then list scheduling region by region."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set

from tile_eg.egraph import Node
from tile_eg.extract.base import Refused
from tile_eg.extract.pricing import Price
from tile_eg.extract.selection import Selection
from tile_eg.ops.physical import OVERWRITES, STORES

Edge = tuple[int, int]


class Dependences:
    """Which item must come before which, by region; `why` keeps the nodes that make an edge, to explain a cycle."""

    def __init__(self, chosen: Selection) -> None:
        self.chosen, self.graph = chosen, chosen.graph
        self.edges: dict[int, set[Edge]] = defaultdict(set)
        self.why: dict[Edge, set[Node]] = {}
        self._data()
        self._overwritten()
        self._states()
        self._tensors()

    def _before(self, producer: tuple[int, int] | None, item: int, region: int, why: Iterable[Node]) -> None:
        if producer is None:
            return
        shared = next(r for r in self.graph.ancestors(producer[1]) if r in self.graph.ancestors(region))
        first, later = self.chosen.lift(*producer, shared), self.chosen.lift(item, region, shared)
        if later != first:
            self._edge(shared, first, later, why)

    def _edge(self, region: int, a: int, b: int, why: Iterable[Node]) -> None:
        self.edges[region].add((a, b))
        self.why.setdefault((a, b), set(why))

    def _data(self) -> None:
        for n in self.chosen.instructions:
            for c in self.chosen.sources(n):
                self._before(self.chosen.producer(c), n.cls, n.region, [n, *self.chosen.chain(c)])
        for (loop, _), n in self.chosen.states.items():
            copied = [c for c in self.chosen.after(n).children if self.chosen.after(n).op == "NextCp"]
            for c in (n.children[0], *copied):
                self._before(self.chosen.producer(c), -loop, self.graph.parents[loop], [n, *self.chosen.chain(c)])
        for loop, states in self.chosen.tensor_states.items():
            for n in states.values():
                c = n.children[0]
                self._before(self.chosen.producer(c), -loop, self.graph.parents[loop], [n, *self.chosen.chain(c)])

    def _after_readers(self, version: int, writer: int, region: int, why: list[Node]) -> None:
        """All other readers of a version come before the item that overwrites it."""
        for item, where in self.chosen.readers[version]:
            if item == writer or region not in self.graph.ancestors(where):
                continue
            reader = self.chosen.lift(item, where, region)
            if reader != writer:
                n = self.chosen.pick[item]
                through = [z for c in n.children if self.chosen.base(c) == version for z in self.chosen.chain(c)]
                self._edge(region, reader, writer, [*why, n, self.chosen.pick[version], *through])

    def _overwritten(self) -> None:
        for n in self.chosen.instructions:
            if n.op in OVERWRITES:
                c = n.children[OVERWRITES[n.op]]
                self._after_readers(self.chosen.base(c), n.cls, n.region, [n, *self.chosen.chain(c)])
            elif n.op in STORES:
                self._after_readers(self.chosen.base(n.children[0]), n.cls, n.region, [n])

    def _states(self) -> None:
        for (loop, k), n in self.chosen.states.items():
            first = self.chosen.pick[n.children[0]]
            if first.op == "Give":
                why = [n, *self.chosen.chain(n.children[0])]
                self._after_readers(self.chosen.base(n.children[0]), -loop, self.graph.parents[loop], why)
            if self.chosen.after(n).op == "NextIn":
                self._in_place(loop, k, n)

    def _in_place(self, loop: int, k: int, state: Node) -> None:
        """Readers of the old value come before the first writer of the chain that ends in the state's cell."""
        made = self.chosen.producer(state.children[1])
        if not made or made[1] != loop:
            return
        writer, why = made[0], [state, *self.chosen.chain(state.children[1])]
        while writer > 0 and self.chosen.pick[writer].op in OVERWRITES:
            node = self.chosen.pick[writer]
            c = node.children[OVERWRITES[node.op]]
            why += self.chosen.chain(c)
            below = self.chosen.producer(c)
            if not below or below[1] != loop or below[0] < 0:
                break
            writer = below[0]
        for read in self.chosen.state_reads(loop, k):
            self._after_readers(read.cls, writer, loop, why)

    def _tensors(self) -> None:
        """A store in a loop comes after the readers of the version that the trip began with."""
        for loop, states in self.chosen.tensor_states.items():
            for k, n in states.items():
                made = self.chosen.producer(n.children[1])
                if made and made[1] == loop:
                    for read in self.chosen.nodes:
                        if read.op == "PTArg" and read.payload[:2] == (loop, k):
                            self._after_readers(read.cls, made[0], loop, [n])


class _Region:
    """List scheduling of one region: longest path first, onto pipes that run one instruction at a time."""

    def __init__(self, items: list[int], edges: set[Edge], duration: dict[int, int], pipe: dict[int, str | None]) -> None:
        self.items, self.duration, self.pipe = items, duration, pipe
        self.after: dict[int, list[int]] = defaultdict(list)
        self.waits = dict.fromkeys(items, 0)
        for a, b in sorted(edges):
            self.after[a].append(b)
            self.waits[b] += 1

    def order(self) -> list[int] | None:
        """The items in order, or None where the edges have a cycle."""
        urgency = self._urgency()
        if urgency is None:
            return None
        rank = {x: i for i, x in enumerate(self.items)}
        free: dict[str, int] = {}
        ready = dict.fromkeys(self.items, 0)
        waits, out = dict(self.waits), []
        able = [x for x in self.items if not waits[x]]
        while able:
            item = min(able, key=lambda x: (self._start(x, ready, free), -urgency[x], rank[x]))
            able.remove(item)
            end = self._start(item, ready, free) + self.duration[item]
            for p in [self.pipe[item]] if self.pipe[item] else list(free):
                free[p] = end  # type: ignore[index]
            out.append(item)
            for y in self.after[item]:
                ready[y] = max(ready[y], end)
                waits[y] -= 1
                if not waits[y]:
                    able.append(y)
        return out

    def _start(self, x: int, ready: dict[int, int], free: dict[str, int]) -> int:
        pipe = self.pipe[x]
        return max(ready[x], free.get(pipe, 0) if pipe else max(free.values(), default=0))

    def _urgency(self) -> dict[int, int] | None:
        """Cycles from the start of each item to the end of what depends on it; None for a cycle."""
        waits, able, topological = dict(self.waits), [x for x in self.items if not self.waits[x]], []
        while able:
            x = able.pop()
            topological.append(x)
            for y in self.after[x]:
                waits[y] -= 1
                if not waits[y]:
                    able.append(y)
        if len(topological) < len(self.items):
            return None
        out: dict[int, int] = {}
        for x in reversed(topological):
            out[x] = self.duration[x] + max((out[y] for y in self.after[x]), default=0)
        return out


def order_regions(chosen: Selection, needs: Dependences, prices: dict[int, Price]) -> dict[int, list[int]]:
    """Items of every region in order of issue. Refused where dependences form a cycle; the nodes on it are the cut."""
    items = chosen.items()
    orders: dict[int, list[int]] = {}

    def visit(region: int) -> int:
        duration: dict[int, int] = {}
        pipe: dict[int, str | None] = {}
        for x in items[region]:
            if x < 0:
                duration[x], pipe[x] = chosen.graph.trips[-x] * visit(-x), None
            else:
                price = prices[x]
                duration[x] = price.total
                pipe[x] = price.pipe or "none"
        found = _Region(items[region], needs.edges[region], duration, pipe).order()
        if found is None:
            raise _cycle(chosen, needs, region, items[region])
        orders[region] = found
        return sum(duration.values())

    visit(0)
    return orders


def by_lag(order: list[int], lag: Mapping[int, int], edges: set[Edge], prices: Mapping[int, Price]) -> list[int]:
    """The items of a skewed loop, those of the latest trip first. Each trip's are ordered as if what others made were there."""
    out: list[int] = []
    for own in sorted({lag[x] for x in order}):
        items = [x for x in order if lag[x] == own]
        inside = {(a, b) for a, b in edges if a in items and b in items}
        duration, pipe = {x: prices[x].total for x in items}, {x: prices[x].pipe or "none" for x in items}
        out += _Region(items, inside, duration, dict(pipe)).order() or items
    return out


def as_late(order: list[int], moved: Set[int], edges: Set[Edge]) -> list[int]:
    """The order with each item of `moved` right before the first that needs it."""
    after: dict[int, set[int]] = defaultdict(set)
    for a, b in edges:
        after[a].add(b)
    out: list[int] = []
    for item in reversed(order):
        first = next((i for i, x in enumerate(out) if x in after[item]), None) if item in moved else 0
        out.insert(0 if first is None else first, item)
    return out


def in_groups(order: list[int], edges: set[Edge], on_v: Set[int]) -> list[int]:
    """The order with the items of V in groups of which none needs another of its group: V waits between two groups alone.

    Each item stands as early as that allows, those of a group as they stood before.
    """
    after: dict[int, set[int]] = defaultdict(set)
    waits = dict.fromkeys(order, 0)
    for a, b in edges:
        after[a].add(b)
        waits[b] += 1
    out, left, behind = list[int](), list(order), set[int]()
    while left:
        able = [x for x in left if not waits[x]]
        item = next((x for x in able if x not in behind), able[0])
        left.remove(item)
        out.append(item)
        if item in behind:
            behind.clear()
        behind |= after[item] & on_v if item in on_v else set()
        for y in after[item]:
            waits[y] -= 1
    return out


def _cycle(chosen: Selection, needs: Dependences, region: int, items: list[int]) -> Refused:
    """Names the items on a cycle, and cuts the nodes behind its edges."""
    after: dict[int, list[int]] = defaultdict(list)
    for a, b in sorted(needs.edges[region]):
        after[a].append(b)
    for start in items:
        path, seen = [start], {start}
        stack = [iter(after[start])]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                path.pop()
            elif step == start:
                edges = list(zip(path, [*path[1:], start], strict=True))
                cut = sorted({n for e in edges for n in needs.why.get(e, ())}, key=lambda n: n.index)
                names = " -> ".join("loop" if x < 0 else chosen.pick[x].op for x in path)
                return Refused("cycle", names, cut)
            elif step not in seen:
                seen.add(step)
                path.append(step)
                stack.append(iter(after[step]))
    raise AssertionError("a region without an order has a cycle")
