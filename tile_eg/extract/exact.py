"""The exact extractor: the shortest choice by CP-SAT, then the next ones; a refused choice becomes a cut."""

from __future__ import annotations

from collections.abc import Iterable

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Extraction, Refused, decisions
from tile_eg.extract.makespan import MEETING, makespan
from tile_eg.extract.model import Model
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.realise import realise


class Exact:
    """CP-SAT to optimality, within `seconds` of its deterministic time a solve and `refusals` choices that turn out illegal."""

    name = "exact"

    def __init__(self, seconds: float = 10.0, refusals: int = 40, workers: int = 1) -> None:
        self.seconds, self.refusals, self.workers = seconds, refusals, workers

    def extract(self, graph: Graph, chip: Chip, pricer: Pricer, k: int = 3) -> Extraction:
        model = Model(graph, chip, pricer)
        self.aim(model)
        out = Extraction([], extractor=self.name)
        while len(out.schedules) < k and len(out.refused) < self.refusals:
            found = self._solve(model, out)
            if found is None:
                break
            cost, nodes = found
            try:
                schedule = realise(graph, nodes, model.prices, chip)
                schedule.cost = cost
                out.schedules.append(schedule)
                model.forbid(self._settled(graph, nodes, len(out.schedules)))
            except Refused as r:
                out.refused.append((cost, r))
                model.forbid(self._cut(r, nodes))
        out.gave_up |= len(out.refused) >= self.refusals
        out.schedules.sort(key=lambda s: s.cost)
        return out

    @staticmethod
    def _settled(graph: Graph, nodes: list[Node], found: int) -> Iterable[Node]:
        """What the next schedule must not repeat: what only a rank model can judge, where there is a choice.

        That is a skew, or, behind the second schedule, the form of a loop: how deep its tiles are.
        """
        meets = {n.region for n in nodes if n.op in MEETING}
        skews = [n for n in nodes if n.op == "Skew" and n.payload[0] in meets]
        forms = [n for n in nodes if len(_loops_that_give(graph, n.cls)) > 1] if found > 1 else []
        return skews or forms or decisions(nodes) or nodes

    @staticmethod
    def _cut(refused: Refused, nodes: list[Node]) -> Iterable[Node]:
        return refused.cut or [n for n in nodes if n.op not in ("Stages", "L0")]

    def aim(self, model: Model) -> None:
        """Sets what the solver is to minimise."""
        model.minimise_time()

    def _solve(self, model: Model, out: Extraction) -> tuple[float, list[Node]] | None:
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self.workers
        solver.parameters.max_deterministic_time = self.seconds  # the same answer on a busy machine
        solver.parameters.max_time_in_seconds = 10 * self.seconds
        solver.parameters.random_seed = 0
        out.solves += 1
        status = solver.solve(model.cp)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            out.gave_up = status == cp_model.UNKNOWN
            return None
        nodes = [n for n in model.graph.nodes if solver.boolean_value(model.chosen[n.index])]
        return makespan(model.graph, model.chip, nodes, model.prices), nodes


def _loops_that_give(graph: Graph, cls: int) -> set[int]:
    """The loops of which a class is a result: more than one where a loop has other forms."""
    return {n.payload[0] for n in graph.classes[cls] if n.op == "PProj"}
