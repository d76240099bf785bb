"""The e-graph, behind one door: values in, rules by phase with budgets, a flat snapshot out."""

from __future__ import annotations

from tile_eg.egraph.graph import Graph, Node, Tile, Where
from tile_eg.egraph.saturate import Budget, Phase, saturate

__all__ = ["Budget", "Graph", "Node", "Phase", "Tile", "Where", "saturate"]
