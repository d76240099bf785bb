"""The exact extractor: the shortest choice by CP-SAT, then the next ones; a refused choice becomes a cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Extraction, Refused, decisions
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.makespan import makespan, skews
from tile_eg.extract.model import Model
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.schedule import Schedule
from tile_eg.extract.selection import is_half, trips_ahead
from tile_eg.extract.solver import Searches
from tile_eg.ops.physical import STORES, VECTOR

ALIKE = 1
"""Choices that may be of one form of a loop before another form is asked for; one more where a load may bring several trips'
tiles, since the search model does not know what the memory system makes of that."""
Settled = Callable[[Graph, list[Node], int], Iterable[Node]]


class Exact:
    """CP-SAT to optimality, within `work` a solve (`solver` says in which unit) and `refusals` choices that turn out illegal.

    No further schedule is looked for once all solves together took `total` of that work.
    """

    name = "exact"
    as_found = False  # whether a choice keeps the skews with which it was found

    def __init__(self, work: float = 10.0, refusals: int = 40, total: float = 30.0) -> None:
        self.work, self.refusals, self.total = work, refusals, total
        self.spent, self.searches = 0.0, Searches(work)

    def extract(self, graph: Graph, chip: Chip, pricer: Pricer, k: int = 3) -> Extraction:
        out = Extraction([], extractor=self.name)
        self.spent, self.searches = 0.0, Searches(self.work)
        cuts: list[list[Node]] = []
        self._find(self._model(graph, chip, pricer, cuts), out, min(k, 2) if _both_ways(graph) else k, self._settled, cuts)
        if k > 1 and _both_ways(graph):
            self._sparing(graph, chip, pricer, out, cuts)
        if 1 < len(out.schedules) < k and not out.gave_up:  # forms have their schedules: now any decision may differ
            cuts += [list(decisions(s.nodes)) for s in out.schedules]
            self._find(self._model(graph, chip, pricer, cuts), out, k, self._decided, cuts)
        out.gave_up |= len(out.refused) >= self.refusals
        out.schedules.sort(key=lambda s: s.cost)
        return out

    def _sparing(self, graph: Graph, chip: Chip, pricer: Pricer, out: Extraction, cuts: list[list[Node]]) -> None:
        """Adds to each schedule one with what takes less room, not less time: whether a tile more then fits is not known here.

        Those may be more than were asked for.
        """
        sparing = [n for n in graph.nodes if n.op in VECTOR and VECTOR[n.op].saves_room]
        for s in list(out.schedules) if sparing else ():
            if not set(sparing) & set(s.nodes):
                model = self._model(graph, chip, pricer, cuts)
                model.cp.add_bool_or([model.chosen[n.index] for n in sparing])
                model.cp.add_bool_and([model.chosen[n.index] for n in _shared_stores(graph, s.nodes)])
                self._find(model, out, len(out.schedules) + 1, self._decided, cuts)

    def _model(self, graph: Graph, chip: Chip, pricer: Pricer, cuts: Iterable[Iterable[Node]]) -> Model:
        model = Model(graph, chip, pricer)
        self.aim(model)
        for cut in cuts:
            model.forbid(cut)
        return model

    def _find(self, model: Model, out: Extraction, k: int, settled: Settled, cuts: list[list[Node]]) -> None:
        """Adds schedules until there are `k`; choices that turn out illegal go to `cuts`."""
        found = 0
        while len(out.schedules) < k and len(out.refused) < self.refusals and self.spent < self.total:
            if out.gave_up and out.schedules:  # what is not proven once is not proven with a cut more, by as much work again
                break
            nodes = self._solve(model, out)
            if nodes is None:
                break
            legal = self._realised(model, nodes, out, k, cuts)
            found += bool(legal)
            if legal:
                model.forbid(settled(model.graph, legal[0], found))

    def _realised(self, model: Model, nodes: list[Node], out: Extraction, k: int, cuts: list[list[Node]]) -> list[list[Node]]:
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
    def _decided(graph: Graph, nodes: list[Node], found: int) -> Iterable[Node]:
        """Which decisions: how deep buffers are, and the skew, follow from the others as what is best with them."""
        return [n for n in decisions(nodes) if n.op not in ("Skew", "Buffers")] or nodes

    @staticmethod
    def _settled(graph: Graph, nodes: list[Node], found: int) -> Iterable[Node]:
        """What must not recur: the decisions of a choice, or how many vector cores a block takes, where that can be chosen.

        Behind the first few choices it is the form of a loop, how deep its tiles are.
        """
        if _both_ways(graph):
            return _shared_stores(graph, nodes)
        alike = ALIKE + any(trips_ahead(n) > 1 for n in graph.nodes)
        forms = [n for n in nodes if len(_loops_that_give(graph, n.cls)) > 1] if found > alike else []
        return forms or Exact._decided(graph, nodes, found)

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


def _loops_that_give(graph: Graph, cls: int) -> set[int]:
    """The loops of which a class is a result: more than one where a loop has other forms."""
    return {n.payload[0] for n in graph.classes[cls] if n.op == "PProj"}


def _both_ways(graph: Graph) -> bool:
    """Whether a block of a pure vector kernel may take two cores or one: fewer blocks at once, and more cores to launch."""
    stores = [n for n in graph.nodes if n.op in STORES]
    return not any(n.op == "L0" for n in graph.nodes) and len({is_half(graph, n) for n in stores}) == 2


def _shared_stores(graph: Graph, nodes: Iterable[Node]) -> list[Node]:
    """The stores of a choice; where two vector cores share some, those."""
    stores = [n for n in nodes if n.op in STORES]
    return [n for n in stores if is_half(graph, n)] or stores
