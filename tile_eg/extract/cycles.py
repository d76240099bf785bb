"""Classes of an e-graph that can be computed from each other."""

from __future__ import annotations

from tile_eg.egraph import Graph


def cyclic_groups(graph: Graph) -> list[set[int]]:
    """Strongly connected groups of more than one class (Tarjan, without recursion)."""
    edges = {c: {k for n in nodes for k in n.children if k in graph.classes} for c, nodes in graph.classes.items()}
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    out: list[set[int]] = []
    for start in edges:
        if start in index:
            continue
        work = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            c, rest = work[-1]
            for k in rest:
                if k not in index:
                    index[k] = low[k] = len(index)
                    stack.append(k)
                    work.append((k, iter(edges[k])))
                    break
                if k in stack:
                    low[c] = min(low[c], index[k])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[c])
                if low[c] == index[c]:
                    group = set(stack[stack.index(c) :])
                    del stack[stack.index(c) :]
                    if len(group) > 1 or c in edges[c]:
                        out.append(group)
    return out
