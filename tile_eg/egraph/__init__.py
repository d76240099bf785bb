"""The e-graph, behind one door: values in, rules by phase with budgets, a flat view out."""

from __future__ import annotations

from tile_eg.egraph.graph import Demand, Graph, Node, Tile
from tile_eg.egraph.saturate import Budget, Phase, saturate

__all__ = ["Budget", "Demand", "Graph", "Node", "Phase", "Tile", "saturate"]
