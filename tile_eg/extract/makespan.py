"""The search model's time of a choice: pipes overlap inside a loop whose trips overlap, and add up elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import product

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.extract.buffers import Buffer, buffers, busy, uncovered
from tile_eg.extract.pricing import Price
from tile_eg.ops.physical import AIC, AIV, CROSSING

HOPS = 3  # handovers on the way through a trip: cube to vector, back, and to vector again
THERE, BACK = CROSSING[AIC], CROSSING[AIV]
NEAR = 2  # half trips of skew: more of them hide nothing where the cores meet one way only
MEETING = THERE | BACK  # where one kind of core fills what the other reads: the cube core, the vector cores


def loop_time(
    trips: int, skew: int, pipes: dict[str, int], held: list[Buffer], inner: int, crossing: bool, returning: bool, hop: int,
    fills: int = 1,
) -> int:  # fmt: skip
    """Cycles of a loop: fill + trips * slowest pipe + drain, where a pipe is as slow as the `held` buffers make it.

    `hop` is the latency of one handover between cores; without skew both cores take turns. Where they meet there and back, a trip
    is not begun before the one that is `skew + 1` earlier has gone its way; whether a skew is enough otherwise is left to a model
    that sees the order. The way through one trip is filled and drained once, and a handover longer for each further half trip:
    twice (`fills`) where the cube core cannot begin while the vector cores end the tile before, since it waits for them first.
    """
    total, waiting = sum(pipes.values()), busy(pipes, held)
    slowest = max(waiting.values(), default=0)
    if crossing and not skew:
        turns = sum(max((c for p, c in waiting.items() if p.startswith(core)), default=0) for core in ("AIC", "AIV"))
        return trips * (turns + inner + 2 * hop + uncovered(pipes, held))
    each = slowest + inner + uncovered(pipes, held)
    if crossing:
        way = total + HOPS * hop
        around = -(-trips * (total + inner + 2 * hop) // (skew + 1)) if returning else 0
        return max(trips * each, around) + fills * (way - slowest + (skew - 1) * hop)
    return trips * each + total - slowest


def makespan(graph: Graph, chip: Chip, nodes: Iterable[Node], prices: list[Price]) -> int:
    """Cycles of one block under a choice of nodes."""
    nodes = list(nodes)
    held = buffers(nodes, prices, chip.sync.refill)
    loads: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    late: dict[int, int] = {}
    loops, there, back = set[int](), set[int](), set[int]()
    for n in nodes:
        for pipe, c in prices[n.index].cycles.items():
            loads[n.region][pipe] += c
        if n.op == "Skew":
            late[n.payload[0]] = n.payload[1]
        elif n.op == "PLoop":
            loops.add(n.payload[0])
        elif n.op in MEETING:
            (there if n.op in THERE else back).add(n.region)

    def inside(region: int) -> int:
        return sum(time(loop) for loop, around in graph.parents.items() if around == region and loop in loops)

    def time(loop: int) -> int:
        hop = round(chip.sync.cross_latency)
        meets, returns = loop in there | back, loop in there & back
        fills = 2 if 0 in back and not graph.parents[loop] else 1
        pipes, around = loads[loop], held.get(loop, [])
        return loop_time(graph.trips[loop], late.get(loop, 0), pipes, around, inside(loop), meets, returns, hop, fills)

    return sum(loads[0].values()) + inside(0)


def skews(graph: Graph, chip: Chip, nodes: list[Node], prices: list[Price]) -> list[tuple[int, list[Node]]]:
    """The choice with each skew of the loops in which the cores meet, with its cycles, the shortest first."""
    there, back = ({n.region for n in nodes if n.op in ways} for ways in (THERE, BACK))
    free = [n for n in nodes if n.op == "Skew" and n.payload[0] in there | back]
    far = [n.payload[0] in there & back for n in free]
    options = [[m for m in graph.classes[n.cls] if m.payload[1] <= NEAR or f] for n, f in zip(free, far, strict=True)]
    kept = [n for n in nodes if n not in free]
    found = [sorted([*kept, *taken], key=lambda n: n.index) for taken in product(*options)]
    return sorted(((makespan(graph, chip, f, prices), f) for f in found), key=lambda x: x[0])
