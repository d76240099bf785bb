"""The part of a graph in which a choice by one cost a node has few ways to be illegal: what such a cost cannot say is settled.

Where states of loops lie and how they get their next value, which buffers are taken over, which core stores a tensor, how
products that add up are cut along their rows: these choices hang together, so they are taken from a schedule that is legal. Where
that has nothing to say, a state lies in L0C before UB, a value is copied, and a loop is not skewed.
"""

from __future__ import annotations

from collections.abc import Iterable

from tile_eg.egraph import Graph, Node
from tile_eg.egraph.view import pruned
from tile_eg.extract.accumulators import Accumulators, layout
from tile_eg.extract.constraints import constraints
from tile_eg.extract.selection import is_half, tensor_of, touches_whole, trips_ahead
from tile_eg.ops.physical import ADDING, STORES, TOUCHES
from tile_eg.ops.types import Level


def frozen(graph: Graph, schedule: Iterable[Node]) -> list[Node]:
    """The nodes that are left of a graph, all of those of the legal schedule among them."""
    kept = _Settled(graph, set(schedule))
    return pruned([n for n in graph.nodes if kept.has(n)], graph.root)


class _Settled:
    """What a schedule settles."""

    def __init__(self, graph: Graph, schedule: set[Node]) -> None:
        self.graph, self.schedule = graph, schedule
        self.used = {n.cls for n in schedule}
        self.place = {n.payload[:2]: n for n in self._places()}
        self.cores = {tensor_of(n): TOUCHES[n.op] for n in schedule if n.op in STORES}
        self.whole = any(touches_whole(graph, n) for n in schedule)
        self.layouts = {layout(n) for n in schedule if n.op == "L0"}
        found = Accumulators(graph)
        meeting = [(n, cut) for n, part, cut in found.made if any(part in g for g in found.groups)]
        self.products, self.cuts = {n for n, _ in meeting}, {cut for _, cut in meeting}
        full = (c for c in constraints(graph) if len(schedule.intersection(c.nodes)) == c.most)
        self.against = {n for c in full for n in c.nodes}

    def _places(self) -> list[Node]:
        """The states of loops, the one that holds last: of the schedule, else in L0C, else halved, else the first."""
        states = [n for n in self.graph.nodes if n.op == "State"]
        best_last = sorted(states, key=lambda n: (n.payload[2][0] is Level.L0C, n.payload[2][1] is not None, -n.index))
        return [*best_last, *(n for n in states if n in self.schedule)]

    def has(self, n: Node) -> bool:
        """Whether a node is left."""
        if n in self.schedule:
            return True
        settled_by = (self._lies, self._touches, self._adds_up, self._runs, self._cell)
        return n not in self.against and all(holds(n) for holds in settled_by)

    def _lies(self, n: Node) -> bool:
        held = self.place.get(n.payload[:2]) if n.op in ("State", "PArg", "PProj") else None
        if n.op == "State":
            return held is n
        return n.op not in ("PArg", "PProj") or (held is not None and held.payload == n.payload)

    def _touches(self, n: Node) -> bool:
        """Tensors are touched by the core that stores them; where the vector cores would meet in one, by halves or whole."""
        if n.op in TOUCHES and self.cores.get(tensor_of(n), TOUCHES[n.op]) != TOUCHES[n.op]:
            return False
        return not (is_half(self.graph, n) if self.graph.met and self.whole else touches_whole(self.graph, n))

    def _adds_up(self, n: Node) -> bool:
        if n.op == "L0":
            return n.cls not in self.cuts or layout(n) in self.layouts
        return n.op not in ADDING or n not in self.products

    @staticmethod
    def _runs(n: Node) -> bool:
        return trips_ahead(n) == 1 and not (n.op == "Skew" and n.payload[1])

    def _cell(self, n: Node) -> bool:
        """Whether a value may come into its cell like this: as in the schedule, else by a copy where there is one."""
        ways = self.graph.classes[n.cls]
        taken = [w for w in ways if w.op in ("Give", "NextIn")]
        if not taken and all(w.op != "NextCp" for w in ways):
            return True
        copies = [w for w in ways if w not in taken]
        return n.cls not in self.used and n in (copies or ways)
