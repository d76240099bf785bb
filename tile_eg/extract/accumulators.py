"""Products that add up in one accumulator in L0C have to lay it out alike.

An Mmad packs the rows that it computes: a column of fractals is as long as they are, rounded up to 16. So where a product is cut
along its rows, L0C holds window behind window, each packed on its own; where only part of a tile is valid, fewer rows are packed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Refused
from tile_eg.extract.selection import Selection
from tile_eg.ir.index import Expr
from tile_eg.ops.physical import ADDING, ALIASES, PRODUCTS
from tile_eg.ops.types import Level


class Layout(NamedTuple):
    """Rows of a window that is packed on its own (0: all rows are one), and how many rows of the tile are valid."""

    window: int
    rows: Expr

    def __str__(self) -> str:
        return f"{self.rows} rows" + (f" in windows of {self.window}" if self.window else "")


def layout(cut: Node) -> Layout:
    """How a product that is cut like this (an L0 node) lays out its result."""
    tile, _, m = cut.payload[:3]
    return Layout(m if m < tile.rows else 0, tile.vrows)


def check_accumulators(chosen: Selection) -> None:
    """Refused where two products leave different layouts in one accumulator, or what reads it takes it for another one."""
    found: dict[object, tuple[Layout, Node]] = {}
    for n in chosen.nodes:
        if n.op in PRODUCTS:
            cut = chosen.pick[n.children[0]]
            made, first = found.setdefault(chosen.cells.find(n.cls), (layout(cut), cut))
            if made != layout(cut):
                raise Refused("cell", f"one accumulator as {made} and as {layout(cut)}", [first, cut, *_sharing(chosen, n.cls)])
    for n in chosen.instructions:
        for c in _read(chosen, n):
            rows, held = chosen.graph.demands[c].tile.vrows, found.get(chosen.cells.find(c))
            if held and held[0].rows != rows:
                what = f"{n.op} reads {rows} rows of an accumulator of {held[0]}"
                raise Refused("cell", what, [held[1], n, *_sharing(chosen, c)])


def _read(chosen: Selection, n: Node) -> Iterable[int]:
    """The classes in L0C that an instruction takes out of it."""
    places = ((c, chosen.graph.demands.get(c)) for c in chosen.sources(n) if n.op not in ADDING)
    return [c for c, where in places if where and where.level is Level.L0C]


def _sharing(chosen: Selection, cls: int) -> list[Node]:
    """The nodes by which an accumulator is one."""
    root = chosen.cells.find(cls)
    states = (n for n in chosen.nodes if n.op == "State" and chosen.cells.find(("cell", *n.payload[:2])) == root)
    return [*(n for n in chosen.nodes if n.cls in chosen.graph.demands and chosen.cells.find(n.cls) == root), *states]


class Accumulators:
    """The accumulators of a graph in which products of different layouts could meet.

    `groups` are their parts, classes and states of loops (as (loop, number)); `links` are nodes with the two parts that are one
    place where the node is chosen; `made` are nodes that make a product, with its part and the class of its cut.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made = [(n, n.cls, n.children[0]) for n in graph.nodes if n.op in PRODUCTS]
        products = len({cut for _, _, cut in self.made})
        self.links = [link for n in graph.nodes for link in self._links(n)] if products > 1 else []
        self.groups = [g for g in self._groups() if self._differ(g)]

    def _links(self, n: Node) -> list[tuple[Node, object, object]]:
        if n.op in ADDING:
            return [(n, n.cls, n.children[1])]
        if n.op == "State":
            return [(n, n.payload[:2], c) for c in n.children] if n.payload[2][0] is Level.L0C else []
        if n.op in ("PArg", "PProj"):
            return [(n, n.cls, n.payload[:2])] if n.payload[2][0] is Level.L0C else []
        place = self.graph.demands.get(n.cls)
        return [(n, n.cls, n.children[0])] if n.op in ALIASES and place and place.level is Level.L0C else []

    def _groups(self) -> list[set[object]]:
        """What the links join; a loop's result only where something goes on with it, as its forms have a place each."""
        given = {n.children[0] for n in self.graph.nodes if n.op == "Give"}
        near: dict[object, set[object]] = defaultdict(set)
        for n, a, b in self.links:
            if n.op != "PProj" or n.cls in given:
                near[a].add(b)
                near[b].add(a)
        out: list[set[object]] = []
        seen: set[object] = set()
        for start in near:
            if start not in seen:
                out.append(_reached(start, near))
                seen |= out[-1]
        return out

    def _differ(self, group: set[object]) -> bool:
        """Whether several products meet here, and their cuts do not all leave one layout."""
        cuts = {cut for _, part, cut in self.made if part in group}
        return len(cuts) > 1 and len({layout(n) for cut in cuts for n in self.graph.classes[cut]}) > 1


def _reached(start: object, near: dict[object, set[object]]) -> set[object]:
    out, stack = {start}, [start]
    while stack:
        fresh = near[stack.pop()] - out
        out |= fresh
        stack += fresh
    return out
