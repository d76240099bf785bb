"""Split-K: which of the e-graph's ways to part a long sum are worth a search of their own."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.egraph import Graph, Node
from tile_eg.ir.machine import SECOND_PHASE_CYCLES, SYNC_ALL_HANDOVERS


def worth_parting(graph: Graph, cycles: float, hbm_cycles: float, shared: int, chip: Chip, most: int | None) -> list[Node]:
    """The numbers of parts that promise a launch shorter than `cycles`, the shortest first: `most` of those that a second phase
    adds, and half as many of those that are added where they are stored (None: all).

    `hbm_cycles` is what HBM needs for the kernel, `shared` the bytes that one part of the sums takes.
    """
    found = {}
    for node in (g for g in graph.grids if g.op in ("Parts", "Added")):
        parts, again = node.payload[0], node.op == "Parts"
        if not again and graph.values.blocks * parts > chip.cube_cores:
            continue
        turns = -(-graph.values.blocks * parts // chip.cube_cores) / parts / -(-graph.values.blocks // chip.cube_cores)
        moved = (1 + again) * parts * shared / chip.hbm_share(1)
        extra = SYNC_ALL_HANDOVERS * chip.sync.cross_latency + again * SECOND_PHASE_CYCLES + moved
        found[node] = max(cycles * turns, hbm_cycles) + extra
    worth = sorted((n for n in found if found[n] < cycles), key=lambda n: found[n])
    kinds = {op: [n for n in worth if n.op == op] for op in ("Parts", "Added")}
    return [*kinds["Parts"][:most], *kinds["Added"][: most and -(-most // 2)]]
