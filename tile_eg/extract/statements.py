"""Which statement of the source a node does."""

from __future__ import annotations

from tile_eg.egraph import Graph, Node
from tile_eg.errors import Span
from tile_eg.ops.physical import STORES


def statement(graph: Graph, node: Node) -> Span | None:
    """Of a store the statement that writes that window, of anything else the one that computes its value, or its last operand."""
    values, demands = graph.values, graph.demands
    if node.op in STORES and (span := values.stores.get(node.payload[-1][:3])):
        return span
    place = demands.get(node.cls) or next((demands[c] for c in reversed(node.children) if c in demands), None)
    return values.spans.get(place.tile.term) if place and place.tile.term else None
