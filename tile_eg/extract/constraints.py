"""Constraints on a choice that need no order: what may not be chosen together. The solver is told, and any choice is judged.

What comes out of an order (clobbered values), of addresses (capacity) and of whole accumulators is judged elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, product
from typing import NamedTuple

from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Refused
from tile_eg.extract.selection import gone_before, trips_ahead
from tile_eg.ops.physical import ALIASES, IN_PARTS, OVERWRITES
from tile_eg.ops.types import Level


class Constraint(NamedTuple):
    """At most `most` of these nodes are chosen, or the choice is wrong for the reason `what`."""

    nodes: Sequence[Node]
    most: int
    what: str


def constraints(graph: Graph) -> Iterator[Constraint]:
    """Those of storage cells: a buffer is handed over once, a kept one never, a state only to itself; of loads for several trips:
    one of them for a loop, since all would go by as many trips, or those of scales together; and of what lies in others."""
    taken: dict[int, list[Node]] = defaultdict(list)
    copied: dict[int, list[Node]] = defaultdict(list)
    coarsened: dict[int, list[Node]] = defaultdict(list)
    for n in graph.nodes:
        if n.op in ("Give", "NextIn"):
            taken[n.children[0]].append(n)
            yield from _handed_over(graph, n)
        elif n.op == "NextCp":
            copied[n.children[0]].append(n)
        elif n.op == "Reshaped":
            yield from _from_a_trips_row(graph, n)
        elif trips_ahead(n) > 1:
            coarsened[n.region].append(n)
        elif n.op == "Part" and graph.demands[n.cls].level is Level.L1:
            yield from _half_read(graph, n)
    yield from (Constraint(group, 1, "a buffer is handed over twice") for group in taken.values() if len(group) > 1)
    for group in coarsened.values():
        yield from _coarsened(graph, group)
    for n in (n for n in graph.nodes if n.op in IN_PARTS and n.op in OVERWRITES):
        yield from _read_beside(graph, n)
    yield from _copied_late(graph, copied, taken)


def _coarsened(graph: Graph, loads: Sequence[Node]) -> Iterator[Constraint]:
    """Of a loop's loads for several trips: one, or those of scales for as many trips each."""
    what = "two loads of a loop bring several trips' tiles"
    scales = [n for n in loads if graph.demands[n.cls].tile.dtype.scale]
    others = [n for n in loads if n not in scales]
    for cls in dict.fromkeys(n.cls for n in scales) if scales else (None,):
        group = [*others, *(n for n in scales if n.cls == cls)]
        if len(group) > 1:
            yield Constraint(group, 1, what)
    for n, m in combinations(scales, 2):
        if n.cls != m.cls and trips_ahead(n) != trips_ahead(m):
            yield Constraint((n, m), 1, what)


def _read_beside(graph: Graph, writer: Node) -> Iterator[Constraint]:
    """A window of a tile is not computed in its place from a part of it that overlaps with the window."""
    gives = [q for q in graph.classes[writer.children[OVERWRITES[writer.op]]] if q.op == "Give"]
    for source in dict.fromkeys(writer.children[: OVERWRITES[writer.op]]):
        for path in _lies_in(graph, (source,)):
            for q in (q for q in gives if q.children[0] == path[-1]):
                for through in _ways_along(graph, path):
                    if gone_before(graph, writer, through):
                        yield Constraint((writer, q, *through), len(through) + 1, "what is written in part is read beside it")


def _from_a_trips_row(graph: Graph, reshaped: Node) -> Iterator[Constraint]:
    """Rows of another length begin at an address, which a row that goes along with the trips is not."""
    for path in _lies_in(graph, (reshaped.children[0],)):
        for through in _ways_along(graph, path):
            if through and through[-1].op == "PanelOf":
                yield Constraint((reshaped, *through), len(through), "rows of trips are read in rows of another length")


def _half_read(graph: Graph, part: Node) -> Iterator[Constraint]:
    """Both vector cores bring half of a tile to L1 where something reads either: what only one of them brings may end sooner."""
    there, what = graph.demands[part.cls].tile.vrows, "half of what both vector cores bring is read"
    for path in _lies_in(graph, (part.cls,)):
        for through in (ways for ways in _ways_along(graph, path) if ways[:1] == (part,) and all(m.op == "Part" for m in ways)):
            first, half = sum(m.payload[0] for m in through), graph.demands[path[-1]].shape[0] // 2
            both = there is not None and there.value is not None and first < half < first + there.value
            brings = (m for m in graph.classes[path[-1]] if m.op == "UBToL1" and graph.demands[m.children[0]].share == 0)
            yield from (Constraint((*through, m), len(through), what) for m in brings if not both)


def _ways_along(graph: Graph, path: tuple[int, ...]) -> Iterator[tuple[Node, ...]]:
    """The nodes that say of each class on a path that it lies in the next one."""
    return product(*([m for m in graph.classes[c] if m.op in ALIASES and m.children[0] == d] for c, d in pairwise(path)))


def _lies_in(graph: Graph, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The classes in whose buffers one may lie, each by the way there."""
    yield path
    for c in dict.fromkeys(m.children[0] for m in graph.classes[path[-1]] if m.op in ALIASES):
        if c not in path:
            yield from _lies_in(graph, (*path, c))


def _handed_over(graph: Graph, taker: Node) -> Iterator[Constraint]:
    for q in graph.classes[taker.children[0]]:
        if taker.op == "NextIn" and q.op == "PArg" and q.payload[:2] != taker.payload:
            yield Constraint((taker, q), 1, "a state ends in the place of another one")
        elif q.op == "Keep":  # what is kept was made before the loop
            yield Constraint((taker, q), 1, "a buffer is handed over that is kept for all trips of a loop")


def _copied_late(graph: Graph, copied: dict[int, list[Node]], taken: dict[int, list[Node]]) -> Iterator[Constraint]:
    """What is copied at the back edge is still there then: not handed over, no state that is written in place."""
    in_place: dict[tuple, list[Node]] = defaultdict(list)
    for n in (n for group in taken.values() for n in group if n.op == "NextIn"):
        in_place[n.payload].append(n)
    for c, copies in copied.items():
        gives = [(n,) for n in taken.get(c, ()) if n.op == "Give"]
        states = [(q, n) for q in graph.classes[c] if q.op == "PArg" for n in in_place[q.payload[:2]]]
        for other in (*gives, *states):
            for copy in copies:
                yield Constraint((copy, *other), len(other), "what is copied when a trip ends is overwritten before")


def check_constraints(graph: Graph, nodes: Iterable[Node]) -> None:
    """Refused where a choice breaks a law, or reads a state of a loop where it does not lie."""
    chosen = set(nodes)
    _check_places(graph, chosen)
    for constraint in constraints(graph):
        together = [n for n in constraint.nodes if n in chosen]
        if len(together) > constraint.most:
            raise Refused("cell", constraint.what, together)


def _check_places(graph: Graph, chosen: set[Node]) -> None:
    """A state is read, inside its loop and after it, where it was placed."""
    states = {n.payload[:2]: n for n in chosen if n.op == "State"}
    for n in sorted((n for n in chosen if n.op in ("PArg", "PProj")), key=lambda n: n.index):
        name, state = graph.values.variables[n.payload[0]], states.get(n.payload[:2])
        if state is None:
            raise Refused("place", f"a state of loop {name} is read, and the loop does not have it", [n])
        if state.payload != n.payload:
            what = f"a state of loop {name} lies in {_place(*state.payload[2])} and is read in {_place(*n.payload[2])}"
            raise Refused("place", what, [n, state])


def _place(level: object, share: int | None) -> str:
    return f"{level}" if share is None else f"{level} by halves of its {('rows', 'columns')[share]}"
