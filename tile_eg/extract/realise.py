"""From a choice of nodes to a schedule that is in order, legal and placed; or the reason why there is none."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.build import Builder
from tile_eg.extract.laws import check_laws
from tile_eg.extract.legality import check
from tile_eg.extract.memory import assign
from tile_eg.extract.pricing import Price
from tile_eg.extract.schedule import Schedule

FOREIGN = "graph"
"""The pipe on which the nodes of a graph from a file lie, and the prefix of their names: they have a cost, and no order."""


def realise(graph: Graph, nodes: list[Node], prices: list[Price], chip: Chip, enforce_capacity: bool = True) -> Schedule:
    """A choice in order, legal and with addresses. Refused where it has no order, clobbers a value or overflows a level."""
    if any(n.op.startswith(f"{FOREIGN}:") for n in nodes):
        return Schedule(graph, nodes, [], {})
    check_laws(graph, nodes)
    builder = Builder(graph, nodes, prices)
    schedule = builder.build()
    check(schedule, builder.chosen)
    assign(schedule, chip, enforce_capacity)
    return schedule
