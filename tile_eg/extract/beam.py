"""The fallback extractor: a beam over decisions, from the cheapest additive choice, by the same makespan as the exact one."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Extraction, Refused, decisions
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.makespan import makespan
from tile_eg.extract.needs import read_too_late
from tile_eg.extract.pricing import Price, Pricer
from tile_eg.ops.records import record

FAR = 1 << 60


@record
class Choice:
    """Overrides of the additive choice by class, the nodes that follow, their time, and how many of them read a value `late`."""

    overrides: tuple[tuple[int, int], ...]
    nodes: tuple[Node, ...]
    cost: int
    late: int = 0


class Beam:
    """Keeps the `width` best choices; a round changes one decision of each; ends when a round brings nothing better.

    All choices that it makes have as many nodes together as `work` says; behind so many `refusals` of them it gives up.
    """

    name = "beam"

    def __init__(self, width: int = 6, rounds: int = 12, work: int = 500_000, refusals: int = 80) -> None:
        self.width, self.rounds, self.work, self.refusals = width, rounds, work, refusals

    def extract(self, graph: Graph, chip: Chip, pricer: Pricer, k: int = 3) -> Extraction:
        search = _Search(graph, chip, [pricer.price(n) for n in graph.nodes], self.work)
        out = Extraction([], extractor=self.name)
        seen: set[frozenset[Node]] = set()
        for choice in search.run(self.width, self.rounds):
            key = decisions(choice.nodes)
            if len(out.schedules) == k or len(out.refused) == self.refusals:
                break
            if key in seen or choice.late:
                continue
            try:
                schedule = build_schedule(graph, list(choice.nodes), search.prices, chip)
                schedule.cost = choice.cost
                out.schedules.append(schedule)
                seen.add(key)
            except Refused as r:
                out.refused.append((choice.cost, r))
        return out


def additive(graph: Graph, chip: Chip, pricer: Pricer) -> Choice | None:
    """The choice of least added cost; None where it would have a cycle."""
    return _Search(graph, chip, [pricer.price(n) for n in graph.nodes]).choice(())


class _Search:
    def __init__(self, graph: Graph, chip: Chip, prices: list[Price], work: int = 1) -> None:
        self.graph, self.chip, self.prices, self.most = graph, chip, prices, 1 + work // len(graph.nodes)
        self.weight = [p.total * graph.total_trips(n.region) + 1 for n, p in zip(graph.nodes, prices, strict=True)]
        self.made: dict[tuple[tuple[int, int], ...], Choice | None] = {}
        self.children = [set(n.children) for n in graph.nodes]
        self.late = [frozenset(together) for together in read_too_late(graph)]
        self.users: dict[int, set[int]] = {c: set() for c in graph.classes}
        for n in graph.nodes:
            for k in n.children:
                self.users[k].add(n.cls)

    def run(self, width: int, rounds: int) -> list[Choice]:
        """Every choice that was met, best first."""
        start = self.choice(())
        met = {start.overrides: start} if start else {}
        beam = list(met.values())
        for _ in range(rounds):
            fresh = [c for b in beam for c in self._neighbours(b) if c.overrides not in met]
            met |= {c.overrides: c for c in fresh}
            best = sorted({*beam, *fresh}, key=_rank)[:width]
            if best == beam or len(self.made) >= self.most:
                break
            beam = best
        return sorted(met.values(), key=_rank)

    def _neighbours(self, at: Choice) -> list[Choice]:
        out = []
        fixed = dict(at.overrides)
        for n in at.nodes:
            for other in self.graph.classes[n.cls]:
                if other is not n and len(self.made) < self.most:
                    changed = self.choice(tuple(sorted({**fixed, n.cls: other.index}.items())))
                    out += [changed] if changed else []
        return out

    def choice(self, overrides: tuple[tuple[int, int], ...]) -> Choice | None:
        """The additive choice under overrides; None where it has a cycle or a state would lie in two places."""
        if overrides not in self.made:
            nodes = self._descend(self._cheapest(self._allowed(dict(overrides))))
            time = makespan(self.graph, self.chip, nodes, self.prices) if nodes else 0
            late = sum(together.issubset(nodes) for together in self.late) if nodes else 0
            self.made[overrides] = Choice(overrides, tuple(nodes), time, late) if nodes else None
        return self.made[overrides]

    def _allowed(self, fixed: dict[int, int]) -> dict[int, list[Node]]:
        """The nodes of each class: an override's own, and reads of a state only where it was placed."""
        place = {}
        for cls, nodes in self.graph.classes.items():
            if nodes[0].op == "State":
                chosen = self.graph.nodes[fixed[cls]] if cls in fixed else min(nodes, key=self._place_cost)
                place[chosen.payload[:2]] = chosen
        out = {}
        for cls, nodes in self.graph.classes.items():
            keep = [self.graph.nodes[fixed[cls]]] if cls in fixed else nodes
            out[cls] = [n for n in keep if self._fits(n, place)]
        return out

    def _place_cost(self, state: Node) -> tuple[bool, bool, int]:
        """In L0C before UB, halved before whole."""
        where = self.graph.demands[state.children[0]]
        return where.level != "L0C", where.share is None, state.index

    @staticmethod
    def _fits(n: Node, place: dict[tuple, Node]) -> bool:
        if n.op == "State":
            return place[n.payload[:2]] is n
        return n.op not in ("PArg", "PProj") or place[n.payload[:2]].payload == n.payload

    def _cheapest(self, allowed: dict[int, list[Node]]) -> dict[int, Node]:
        """For each class its node of least additive cost, by relaxation from the leaves, where a child became cheaper."""
        cost = dict.fromkeys(allowed, FAR)
        best: dict[int, Node] = {}
        open_classes = set(allowed)
        while open_classes:
            for cls, nodes in allowed.items():
                if cls not in open_classes:
                    continue
                open_classes.discard(cls)
                for n in nodes:
                    c = self.weight[n.index] + sum(cost[k] for k in self.children[n.index])
                    if c < cost[cls]:
                        cost[cls], best[cls] = c, n
                        open_classes |= self.users[cls]
        return best

    def _descend(self, best: dict[int, Node]) -> list[Node] | None:
        out: dict[int, Node] = {}
        stack = [self.graph.root]
        while stack:
            cls = stack.pop()
            if cls in out:
                continue
            if cls not in best:
                return None
            out[cls] = best[cls]
            stack.extend(best[cls].children)
        return sorted(out.values(), key=lambda n: n.index)


def _rank(c: Choice) -> tuple[int, int, int, tuple]:
    return c.late, c.cost, len(c.nodes), c.overrides
