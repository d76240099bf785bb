"""Graphs in the JSON of extraction-gym: ours for the extractors of others, and theirs for ours.

The format is that of egraph-serialize: `nodes` by id, each with `op`, `children` (ids of nodes, any of the class that is meant),
`eclass` and `cost` (1 where it is missing), and `root_eclasses`. A choice is one node for each class that is used; it costs the
sum of its nodes, each counted once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tile_eg.egraph import Graph, Node
from tile_eg.egraph.view import numbered, pruned
from tile_eg.errors import TileError
from tile_eg.extract.build_schedule import FOREIGN
from tile_eg.extract.pricing import Price, Pricer
from tile_eg.ir.values import Values
from tile_eg.ops.records import record

ROOT = "(all roots)"
SCALE = 1000
"""Costs are whole numbers to the solver: thousandths."""


def dump(graph: Graph, pricer: Pricer, kept: Sequence[Node] | None = None) -> dict[str, Any]:
    """A graph of ours, or its nodes `kept`.

    A node costs its busy cycles in all trips, and one more, so that fewer instructions are better.
    """
    kept = graph.nodes if kept is None else kept
    first = {n.cls: node_id(n) for n in reversed(kept)}
    nodes = {
        node_id(n): {
            "op": _op(n),
            "children": [first[c] for c in n.children],
            "eclass": str(n.cls),
            "cost": float(pricer.price(n).total * graph.total_trips(n.region) + 1),
        }
        for n in kept
    }
    places = ((cls, graph.demands[cls]) for cls in graph.demands if cls in first)
    told = {str(cls): {"type": f"{w.tile.rows}x{w.tile.cols} {w.tile.dtype} in {w.level}"} for cls, w in places}
    return {"nodes": nodes, "root_eclasses": [str(graph.root)], "class_data": told}


def node_id(node: Node) -> str:
    """The id of a node of ours: its class and its number, which do not depend on the process."""
    return f"{node.cls}.{node.index}"


def _op(node: Node) -> str:
    told = [str(p) for p in node.payload if isinstance(p, int | str)]
    return " ".join([node.op, *told])


@record
class Foreign:
    """A graph from a file with its nodes' ids and costs. It can be used wherever extractors take a graph and a pricer."""

    graph: Graph
    ids: Mapping[int, str]
    names: Mapping[int, str]
    costs: Mapping[int, float]

    def price(self, node: Node) -> Price:
        """The node's cost, in thousandths, as the load of a pipe of its own."""
        cost = round(self.costs[node.index] * SCALE)
        return Price({FOREIGN: cost} if cost else {}, ())

    def cost(self, nodes: list[Node]) -> float:
        """What a choice costs: each node once."""
        return sum(self.costs[n.index] for n in nodes)

    def choices(self, nodes: list[Node]) -> dict[str, str]:
        """The id of the node chosen in each class."""
        return {self.names[n.cls]: self.ids[n.index] for n in nodes if n.index in self.ids}


def load(text: str, file: str) -> Foreign:
    """The graph in a JSON text. TileError where it is not one, or where no finite choice reaches its roots."""
    data = _parsed(text, file)
    raw = data["nodes"]
    nodes = [_node(i, name, raw[name], raw, file) for i, name in enumerate(sorted(raw))]
    roots = [str(r) for r in data["root_eclasses"]]
    nodes.append(Node(len(nodes), ROOT, ROOT, tuple(roots), (), 0, ()))  # type: ignore[arg-type]
    known = {n.cls for n in nodes}
    for root in roots:
        if root not in known:
            raise TileError(f"'{file}': the root class '{root}' has no node")
    kept = pruned(nodes, ROOT)
    if not kept:
        raise TileError(f"'{file}': no finite choice of nodes reaches the roots")
    return _foreign(kept, raw)


def _foreign(kept: list[Node], raw: Mapping[str, Any]) -> Foreign:
    named = [(n, str(n.payload[0]) if n.payload else "", str(n.cls)) for n in kept]
    for n in kept:
        n.payload = ()
    values = Values("", (), 1, (), {}, {}, {})
    graph = numbered(kept, ROOT, {}, Graph(values, [], {}, 0, {}, 0))
    ids = {n.index: name for n, name, _ in named if name}
    costs = {n.index: float(raw[name].get("cost", 1.0)) if name else 0.0 for n, name, _ in named}
    return Foreign(graph, ids, {n.cls: cls for n, _, cls in named}, costs)


def _node(index: int, name: str, held: Any, raw: Mapping[str, Any], file: str) -> Node:
    if not isinstance(held, dict) or "op" not in held or "eclass" not in held:
        raise TileError(f"'{file}': node '{name}' has no op or no eclass")
    cost = held.get("cost", 1.0)
    if not isinstance(cost, int | float) or not math.isfinite(cost) or cost < 0:
        raise TileError(f"'{file}': node '{name}' costs {cost}; a cost is a number from 0 up")
    for child in held.get("children", ()):
        if child not in raw:
            raise TileError(f"'{file}': node '{name}' has a child '{child}', and there is no such node")
    children = tuple(str(raw[c].get("eclass")) for c in held.get("children", ()))
    op = f"{FOREIGN}:{held['op']}"
    return Node(index, op, str(held["eclass"]), children, (name,), 0, ())  # type: ignore[arg-type]


def _parsed(text: str, file: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise TileError(f"'{file}' is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), dict):
        raise TileError(f"'{file}' holds no graph", help='a graph is {"nodes": {...}, "root_eclasses": [...]}')
    if not isinstance(data.get("root_eclasses"), list) or not data["root_eclasses"]:
        raise TileError(f"'{file}' names no root: root_eclasses is empty or missing")
    return data
