"""The search model's time of a choice: pipes overlap inside a loop whose trips overlap, and add up elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.pricing import Price

HOPS = 3  # handovers on the way through a trip: cube to vector, back, and to vector again
MEETING = ("FixToWS", "UBToWS", "FixToUB", "UBToL1", "L1ToUB")  # where one kind of core fills what the other reads
REFILL = {2: 60, 3: 10}  # cycles a trip that a ring of this depth leaves uncovered: assumed, there is no published figure


def loop_time(trips: int, stages: int, skew: int, pipes: dict[str, int], inner: int, crossing: bool, hop: int) -> int:
    """Cycles of a loop: fill + trips * slowest pipe + drain where trips overlap, trips * sum where they do not.

    `hop` is the latency of one handover between cores; without skew both cores take turns. The way through one trip is filled and
    drained once for each half trip of skew; whether one is enough to hide it is left to a model that sees the order.
    """
    total, slowest = sum(pipes.values()), max(pipes.values(), default=0)
    if stages == 1:
        return trips * (total + inner + (2 * hop if crossing else 0))
    if crossing and not skew:
        turns = sum(max((c for p, c in pipes.items() if p.startswith(core)), default=0) for core in ("AIC", "AIV"))
        return trips * (turns + inner + 2 * hop)
    if crossing:
        way = total + HOPS * hop
        return trips * (slowest + inner + REFILL[stages]) + skew * (way - slowest)
    return trips * (slowest + inner + REFILL[stages]) + total - slowest


def makespan(graph: Graph, chip: Chip, nodes: Iterable[Node], prices: list[Price]) -> int:
    """Cycles of one block under a choice of nodes."""
    loads: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    option: dict[tuple[str, int], int] = {}
    loops, meets = set(), set()
    for n in nodes:
        for pipe, c in prices[n.index].cycles.items():
            loads[n.region][pipe] += c
        if n.op in ("Stages", "Skew"):
            option[n.op, n.payload[0]] = n.payload[1]
        elif n.op == "PLoop":
            loops.add(n.payload[0])
        elif n.op in MEETING:
            meets.add(n.region)

    def inside(region: int) -> int:
        return sum(time(loop) for loop, around in graph.parents.items() if around == region and loop in loops)

    def time(loop: int) -> int:
        stages, skew = option.get(("Stages", loop), 1), option.get(("Skew", loop), 0)
        hop = round(chip.sync.cross_latency)
        return loop_time(graph.trips[loop], stages, skew, loads[loop], inside(loop), loop in meets, hop)

    return sum(loads[0].values()) + inside(0)
