"""Masks by position that change nothing in most tiles, as in causal attention below the diagonal: when they have to be made. And
what is written beyond the rows and columns of a tile, where most have all of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from tile_eg.egraph import Graph, Node
from tile_eg.egraph.graph import Tile
from tile_eg.ir.index import BLOCK, ONE, SUB, Expr, const, less, minimum, variables
from tile_eg.ir.sampling import spread
from tile_eg.ir.values import Values

SAMPLE = 256  # blocks


def needed(graph: Graph, node: Node) -> Expr:
    """1 where a mask in place may change an element of its tile: where some position of the whole tile does not compare; and
    where a tile has fewer rows or columns than it may have."""
    if node.op == "VBeyond":
        tile, (rows, cols) = graph.demands[node.cls].tile, node.payload[:2]
        return less(minimum(rows - tile.rows, cols - tile.cols), 0)
    op, bound = node.payload[:2]
    least, most = _ends(graph.demands[node.children[0]].tile)
    fails = {"lt": less(bound, most + 1), "le": less(bound, most), "gt": less(least, bound + 1), "ge": less(least, bound)}
    return fails.get(op, ONE)


def _ends(positions: Tile) -> tuple[Expr, Expr]:
    """The least and the greatest position of a tile of them."""
    i, j = positions.ramp or (0, 0)
    ends = [step * (n - 1) for step, n in ((i, positions.rows), (j, positions.cols))]
    return const(sum(min(0, e) for e in ends)), const(sum(max(0, e) for e in ends))


def share(graph: Graph, node: Node) -> float:
    """In which part of all trips in all blocks a mask has to be made; of many blocks a sample is looked at."""
    from tile_eg.timeline.arrays import sample, values

    condition, v = needed(graph, node), graph.values
    loops = [loop for loop in v.trips if v.variables[loop] in variables(condition)]
    axes = _tiles(v)
    stand_for: Any = 1
    for n, loop in enumerate(loops):
        points = prod(axis.size for name, axis in axes.items() if name != SUB)
        axes[v.variables[loop]], each = (a.reshape(-1, *[1] * (n + 1)) for a in sample(v.trips[loop], points))
        stand_for = stand_for * each
    runs = _runs(graph, loops, axes) * stand_for
    return float((values(condition, axes) * runs).sum() / max(1, runs.sum()))


def _tiles(v: Values) -> dict[str, Any]:
    """Some of a kernel's blocks, each with both of its vector cores where these have tiles of their own."""
    import numpy as np

    blocks = np.array(spread(v.blocks, SAMPLE))
    return {BLOCK: np.repeat(blocks, 2), SUB: np.tile((0, 1), len(blocks))} if v.tile_each else {BLOCK: blocks}


def _runs(graph: Graph, loops: list[int], axes: Mapping[str, Any]) -> Any:
    """1 for each trip that a block has."""
    import numpy as np

    from tile_eg.timeline.arrays import values

    v = graph.values
    runs = np.ones(np.broadcast_shapes(*(np.shape(axis) for axis in axes.values())), int)
    for loop in loops:
        if loop in v.counts:
            runs = runs * (axes[v.variables[loop]] < values(v.counts[loop], axes))
    return runs
