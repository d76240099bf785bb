"""The exact extractor: the shortest choice by CP-SAT, then the next ones; a refused choice becomes a cut."""

from __future__ import annotations

from collections.abc import Iterable

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Extraction, Refused, decisions
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.makespan import makespan, skews
from tile_eg.extract.model import Model
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.rounds import Round, rounds
from tile_eg.extract.schedule import Schedule
from tile_eg.extract.solver import Bounds, Searches

LOADED = 3e-5
"""Work of a solve for each constraint, before its search, which is all that CP-SAT counts (seen: 2 to 4 seconds for 70000)."""
FRUITLESS = 5.0
"""Work after which no more is asked where each choice so far was refused for the room that it needs: in large models, where the
next one costs seconds, and differs in an instruction or two. Smaller tiles are then a better way, or a beam."""


class Exact:
    """CP-SAT to optimality, within `work` a solve (`solver` says in which unit) and `refusals` choices that turn out illegal.

    No further schedule is looked for once all solves together took `total` of that work, or `FRUITLESS` of it in vain.
    """

    name = "exact"
    as_found = False  # whether a choice keeps the skews with which it was found

    def __init__(self, work: float = 10.0, refusals: int = 40, total: float = 30.0) -> None:
        self.work, self.refusals, self.total = work, refusals, total
        self.spent, self.searches = 0.0, Searches(work)

    def extract(self, graph: Graph, chip: Chip, pricer: Pricer, k: int = 3) -> Extraction:
        out = Extraction([], extractor=self.name)
        self.spent = 0.0
        cuts: list[list[Node]] = []
        known = 0
        unasked = Model(graph, chip, pricer)
        self.aim(unasked)
        self.searches = Searches(self.work, Bounds(unasked.cp, unasked.parts()))
        for asked in rounds(graph, out, k):
            cuts += [list(decisions(s.nodes)) for s in out.schedules[known:]]
            known = len(out.schedules)
            model = unasked.copy()
            for cut in cuts:
                model.forbid(cut)
            asked.constrain(model)
            self._find(model, out, asked, cuts)
        out.gave_up |= len(out.refused) >= self.refusals
        out.schedules.sort(key=lambda s: s.cost)
        return out

    def _find(self, model: Model, out: Extraction, asked: Round, cuts: list[list[Node]]) -> None:
        """Adds schedules until there are as many as the round asks for; choices that turn out illegal go to `cuts`."""
        found = 0
        while len(out.schedules) < asked.most and len(out.refused) < self.refusals and self.spent < self.total:
            if out.gave_up and out.schedules:  # what is not proven once is not proven with a cut more, by as much work again
                break
            if self._in_vain(model, out):
                out.gave_up = True
                break
            nodes = self._solve(model, out)
            if nodes is None:
                break
            legal = self._built(model, nodes, out, asked.most, cuts)
            found += bool(legal)
            if legal:
                model.forbid(asked.differing(model.graph, legal[0], found))

    def _in_vain(self, model: Model, out: Extraction) -> bool:
        """Whether enough was asked for nothing but choices without room."""
        asked = self.spent + out.solves * LOADED * len(model.cp.proto.constraints)
        return asked >= FRUITLESS and not out.schedules and bool(out.refused) and all(r.overflow for _, r in out.refused)

    def _built(self, model: Model, nodes: list[Node], out: Extraction, k: int, cuts: list[list[Node]]) -> list[list[Node]]:
        """Adds the schedules of a choice, by its skews, and returns the legal choices; what is refused is forbidden.

        A skew that moves nothing gives the schedule of a smaller one again, and adds none.
        """
        legal: list[list[Node]] = []
        found: dict[object, tuple[int, Schedule]] = {}
        for cost, choice in self._skewed(model, nodes):
            try:
                schedule = build_schedule(model.graph, choice, model.prices, model.chip)
            except Refused as r:
                out.refused.append((cost, r))
                cuts.append(list(self._cut(r, choice)))
                model.forbid(cuts[-1])
                if not any(n.op == "Skew" for n in cuts[-1]):
                    break
            else:
                legal.append(choice)
                skew = sum(n.payload[1] for n in choice if n.op == "Skew")
                moved = tuple((item.loop, item.skew, item.halves) for _, around in schedule.walk() for item in around)
                found[moved] = min(found.get(moved, (skew, schedule)), (skew, schedule), key=lambda f: f[0])
        out.schedules += sorted((s for _, s in found.values()), key=lambda s: s.cost)[: k - len(out.schedules)]
        return legal

    def _skewed(self, model: Model, nodes: list[Node]) -> list[tuple[int, list[Node]]]:
        """The choice with every skew, which only a rank model can judge, the shortest first."""
        if self.as_found:
            return [(makespan(model.graph, model.chip, nodes, model.prices), nodes)]
        return skews(model.graph, model.chip, nodes, model.prices)

    @staticmethod
    def _cut(refused: Refused, nodes: list[Node]) -> Iterable[Node]:
        return refused.cut or [n for n in nodes if n.op not in ("Buffers", "L0")]

    def aim(self, model: Model) -> None:
        """Sets what the solver is to minimise."""
        model.minimise_time()

    def _solve(self, model: Model, out: Extraction) -> list[Node] | None:
        found = self.searches.least(model.cp)
        out.solves += 1
        self.spent += found.work
        out.gave_up |= not found.proved
        if found.values is None:
            return None
        return [n for n in model.graph.nodes if found.values[model.chosen[n.index].index]]

