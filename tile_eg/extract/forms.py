"""Loops that are other forms of each other: of these a choice has one."""

from __future__ import annotations

from collections.abc import Iterable

from tile_eg.egraph import Graph


def forms_of_loops(graph: Graph, loops: Iterable[int]) -> list[list[int]]:
    """The loops, those together that stand in the same one and give the same results; what stands in others comes first."""
    first = {loop: loop for loop in loops}
    for nodes in graph.classes.values():
        giving = {n.payload[0] for n in nodes if n.op == "PProj"} & first.keys()
        for around in {graph.parents[loop] for loop in giving}:
            joined = {first[loop] for loop in giving if graph.parents[loop] == around}
            first = {loop: min(joined) if of in joined else of for loop, of in first.items()}
    groups = [[loop for loop in first if first[loop] == of] for of in sorted({*first.values()})]
    return sorted(groups, key=lambda group: -len(graph.ancestors(group[0])))
