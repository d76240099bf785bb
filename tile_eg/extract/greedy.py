"""The extractor that does not search: for every value its cheapest way by added cost, in one pass over the graph."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Extraction, Refused
from tile_eg.extract.beam import additive
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model
from tile_eg.extract.pricing import Pricer


class Greedy(Exact):
    """The additive choice; where it is not legal, the first legal one that a solver finds from there, whatever it costs."""

    name = "greedy"

    def __init__(self) -> None:
        super().__init__(work=5.0)
        self.start: list[Node] = []

    def extract(self, graph: Graph, chip: Chip, pricer: Pricer, k: int = 3) -> Extraction:
        choice = additive(graph, chip, pricer)
        self.start = list(choice.nodes) if choice else []
        if choice:
            try:
                schedule = build_schedule(graph, self.start, [pricer.price(n) for n in graph.nodes], chip)
                schedule.cost = choice.cost
                return Extraction([schedule], extractor=self.name)
            except Refused as refused:
                out = super().extract(graph, chip, pricer, 1)
                out.refused.insert(0, (choice.cost, refused))
                return out
        return super().extract(graph, chip, pricer, 1)

    def aim(self, model: Model) -> None:
        """Nothing to minimise: the first choice that fits will do."""
        wanted = {n.index for n in self.start}
        for i, x in enumerate(model.chosen):
            model.cp.add_hint(x, i in wanted)
