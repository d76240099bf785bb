"""Schedules that need few flags, where none of the better ones can be planned: nothing has a second buffer or runs late."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.egraph import Graph
from tile_eg.extract.buffers import depth_of
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.schedule import Schedule


class Simple(Exact):
    """The shortest choices among those whose loops have one buffer for each tile, and no skew."""

    name = "simple"
    as_found = True

    def aim(self, model: Model) -> None:
        super().aim(model)
        for n in model.graph.nodes:
            late = n.op == "Skew" and n.payload[1]
            if late or (n.op == "Buffers" and depth_of(n) > 1 and len(model.graph.classes[n.cls]) > 1):
                model.cp.add(model.chosen[n.index] == 0)


def simple_schedules(graph: Graph, chip: Chip, model: str = "analytic") -> list[Schedule]:
    """Up to three schedules of a graph without second buffers and skews, the shortest first; none where no rule offers them."""
    from tile_eg.cost_models import search_model

    return Simple().extract(graph, chip, Pricer(graph, chip, search_model(model, chip))).schedules
