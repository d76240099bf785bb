"""From a choice of nodes to a schedule that is in order, legal and placed; or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Refused
from tile_eg.extract.buffers import depth_of
from tile_eg.extract.build import Builder, is_fill
from tile_eg.extract.constraints import check_constraints
from tile_eg.extract.legality import check
from tile_eg.extract.makespan import makespan
from tile_eg.extract.memory import assign
from tile_eg.extract.pricing import Price
from tile_eg.extract.schedule import Schedule
from tile_eg.extract.trip_order import settle

FOREIGN = "graph"
"""The pipe on which the nodes of a graph from a file lie, and the prefix of their names: they have a cost, and no order."""


def build_schedule(
    graph: Graph,
    nodes: list[Node],
    prices: list[Price],
    chip: Chip,
    asked: Iterable[Node] = (),
    steady: bool = False,
    grouped: bool = False,
    early: bool = False,
    ahead: bool = False,
) -> Schedule:
    """A choice in order, legal and with addresses. Refused where it has no order, clobbers a value or overflows a level.

    Where there is not room or flags for all its buffers, other decisions are taken on their depth, but not of those `asked` for.
    Constants are made while V waits for its first operands; where there is no room for that, where they are read first. `steady`:
    skewed loops are ordered, and UB is given out, for trips that run while the loop is full; in the order in which V waits least,
    where there is room for that. `grouped`: what V does is ordered in groups that do not need each other. `early`: loops
    load a trip ahead. `ahead`: what is read in later trips too has slots for that beyond its buffers.
    """
    if any(n.op.startswith(f"{FOREIGN}:") for n in nodes):
        return Schedule(graph, nodes, [], {})
    check_constraints(graph, nodes)
    lates = (False, True) if any(is_fill(n) for n in nodes) else (False,)
    *ways, last = product(lates, (True, False) if steady else (False,))
    for late, settled in ways:
        try:
            return _ordered(Builder(graph, nodes, prices, late, steady, grouped, early, ahead), chip, asked, settled)
        except Refused as refused:
            if refused.kind != "capacity":
                raise
    return _ordered(Builder(graph, nodes, prices, last[0], steady, grouped, early, ahead), chip, asked, last[1])


def _ordered(builder: Builder, chip: Chip, asked: Iterable[Node], settled: bool) -> Schedule:
    """A choice in its order, legal and with addresses; `settled`: what V does in a trip waits as little as can be."""
    schedule = builder.build()
    schedule.refill = chip.sync.refill
    if settled:
        settle(schedule, builder.prices, chip)
    check(schedule, builder.chosen)
    _hold(schedule, asked)
    assign(schedule, chip)
    schedule.cost = makespan(builder.graph, chip, schedule.nodes, builder.prices)
    return schedule


def _hold(schedule: Schedule, asked: Iterable[Node]) -> None:
    """Refused where a depth that was asked for cannot be had."""
    depths = {n for n in asked if n.op == "Buffers"}
    for node in depths.intersection(schedule.nodes):
        held = schedule.holding(node)
        if held is None:
            raise Refused("stages", f"there are not {depth_of(node)} buffers of it", [node])
        held.held = True
