"""What trips of a loop make of nothing, made once before it: the search model knows what V takes, not what waits for that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_eg.egraph import Graph, Node


def kept(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    """A choice in which constants that trips make are kept for all of them; the same where there are none."""
    out = list(nodes)
    for n in nodes:
        if found := next(_ways(graph, n), None):
            out.remove(n)
            out += [m for m in found if m not in out]
    return sorted(out, key=lambda n: n.index)


def _ways(graph: Graph, n: Node) -> Iterator[tuple[Node, Node]]:
    """How what a node of a loop makes of nothing is made before it: what keeps it, and the same node there."""
    for keep in graph.classes[n.cls] if n.region and not n.children else ():
        if keep.op == "Keep" and keep.payload[0] == n.region:
            yield from ((keep, m) for m in graph.classes[keep.children[0]] if _made(m) == _made(n) and not m.children)


def _made(n: Node) -> tuple:
    """What a node makes, wherever that is."""
    return n.op, *(n.payload[:-1] if n.payload[-1:] == (n.region,) else n.payload)
