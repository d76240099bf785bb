"""Which schedules are asked for beside the shortest: what a search model cannot weigh is asked for both ways.

It cannot weigh how many vector cores a block takes, as fewer blocks then run at once; what takes less room and not less time, as
it does not know whether a tile more then fits; what stays in UB for a later loop, as it does not know what L2 has of it and how
the next row comes in; what comes from the vector cores before the first product of a tile, as it does not know whether the loop
could go on from the tile before; nor, once a few schedules of one form of a loop are known, the other forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tile_eg.egraph import Graph, Node
from tile_eg.extract.base import Extraction, decisions
from tile_eg.extract.buffers import decided, depth_of
from tile_eg.extract.memory import ON_CHIP
from tile_eg.extract.model import Model
from tile_eg.extract.selection import is_half, trips_ahead
from tile_eg.ops.physical import AIV, CROSSING, STORES, VECTOR
from tile_eg.ops.records import record

ALIKE = 1
"""Choices that may be of one form of a loop before another form is asked for; one more where a load may bring several trips'
tiles, since the search model does not know what the memory system makes of that."""
Differing = Callable[[Graph, list[Node], int], Iterable[Node]]
"""What of a choice must not recur in the next ones of its round; the number is its own in the round, from 1 on."""


@record
class Round:
    """Schedules that are looked for, the shortest first, until there are `most` in all.

    Every choice has all of `each`, none of `none_of` and, where that is not empty, one or more of `one_of`; no two of a round
    have the same `differing`.
    """

    most: int
    differing: Differing
    each: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    none_of: tuple[Node, ...] = ()

    def constrain(self, model: Model) -> None:
        """Leaves the model the choices of this round."""
        if self.one_of:
            model.cp.add_bool_or([model.chosen[n.index] for n in self.one_of])
        for n in self.none_of:
            model.cp.add(model.chosen[n.index] == 0)
        if self.each:
            model.cp.add_bool_and([model.chosen[n.index] for n in self.each])


def rounds(graph: Graph, found: Extraction, k: int) -> Iterator[Round]:
    """The rounds for up to `k` schedules, or some more where one takes less room. `found` is read between them."""
    cores = may_share(graph)
    yield Round(min(k, 2) if cores else k, by_cores if cores else by_forms)
    if cores and k > 1:
        yield from _in_less_room(graph, found)
        yield from _made_anew(graph, found)
    if k > 1:
        yield from _staying_otherwise(graph, found)
        yield from _without_waiting(graph, found)
    if 0 < len(found.schedules) < k and not found.gave_up:
        yield Round(k, by_decisions)


def _in_less_room(graph: Graph, found: Extraction) -> Iterator[Round]:
    """For each schedule one more that takes less room, on as many cores."""
    sparing = _sparing(graph.nodes)
    for s in list(found.schedules) if sparing else ():
        if not {*sparing} & {*s.nodes}:
            yield Round(len(found.schedules) + 1, by_decisions, tuple(shared_stores(graph, s.nodes)), sparing)


def _made_anew(graph: Graph, found: Extraction) -> Iterator[Round]:
    """For each schedule whose values share places, so that pipes wait for each other, one more in which no loop keeps what is
    made before it: what it loads again leaves its place meanwhile."""
    kept = tuple(n for n in graph.nodes if n.op == "Keep")
    for s in list(found.schedules) if kept else ():
        if s.crowded > len(ON_CHIP) and {*kept} & {*s.nodes}:
            held = (*shared_stores(graph, s.nodes), *_sparing(s.nodes))
            yield Round(len(found.schedules) + 1, by_decisions, held, none_of=kept)


def _sparing(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The instructions that take less room, and not less time, than others for the same."""
    return tuple(n for n in nodes if n.op in VECTOR and VECTOR[n.op].saves_room)


def _staying_otherwise(graph: Graph, found: Extraction) -> Iterator[Round]:
    """For each schedule in which tiles stay in UB for a later loop two more, on as many cores: one that loads them again, and one
    with a buffer more than the loop has trips, into which the next row comes meanwhile."""
    staying = tuple(n for n in graph.nodes if n.op == "Stays")
    moves = [m for n in staying for m in graph.classes[n.children[0]]]
    depths = [d for m in moves if (cls := decided(m)) is not None for d in graph.classes[cls]]
    more = tuple(d for d in dict.fromkeys(depths) if depth_of(d) > min(map(depth_of, graph.classes[d.cls])))
    for s in [s for s in found.schedules if {*staying} & {*s.nodes}]:
        stores = tuple(shared_stores(graph, s.nodes))
        yield Round(len(found.schedules) + 1, by_decisions, stores, none_of=staying)
        if more and not {*more} & {*s.nodes}:
            yield Round(len(found.schedules) + 1, by_decisions, stores, more)


def _without_waiting(graph: Graph, found: Extraction) -> Iterator[Round]:
    """Where the first product of a tile waits for the vector cores, one schedule more in which it does not."""
    waited_for = tuple(n for n in graph.nodes if n.op in CROSSING[AIV] and not _made_in(graph, n))
    if any({*waited_for} & {*s.nodes} for s in found.schedules):
        yield Round(len(found.schedules) + 1, by_decisions, none_of=waited_for)


def _made_in(graph: Graph, n: Node) -> int:
    """The region in which a move can begin: what is the same in all trips is there before the loop, even where that brings it."""
    return min([n.region, *(_known_in(graph, c) for c in n.children if c in graph.demands)])


def _known_in(graph: Graph, cls: int) -> int:
    kept = next((n for n in graph.classes[cls] if n.op == "Keep"), None)
    return _known_in(graph, kept.children[0]) if kept else graph.demands[cls].region


def may_share(graph: Graph) -> bool:
    """Whether a block of a kernel without products may take two vector cores or one."""
    stores = [n for n in graph.nodes if n.op in STORES]
    return not any(n.op == "L0" for n in graph.nodes) and len({is_half(graph, n) for n in stores}) == 2


def shared_stores(graph: Graph, nodes: Iterable[Node]) -> list[Node]:
    """The stores of a choice; where two vector cores share some, those."""
    stores = [n for n in nodes if n.op in STORES]
    return [n for n in stores if is_half(graph, n)] or stores


def by_cores(graph: Graph, nodes: list[Node], number: int) -> Iterable[Node]:
    """How many vector cores a block takes."""
    return shared_stores(graph, nodes)


def by_forms(graph: Graph, nodes: list[Node], number: int) -> Iterable[Node]:
    """The decisions of the first few choices; of those behind them the forms of loops, where there are several."""
    alike = ALIKE + any(trips_ahead(n) > 1 for n in graph.nodes)
    forms = [n for n in nodes if len(_loops_that_give(graph, n.cls)) > 1] if number > alike else []
    return forms or by_decisions(graph, nodes, number)


def by_decisions(graph: Graph, nodes: list[Node], number: int) -> Iterable[Node]:
    """Any decision: but for how deep buffers are, and the skew, which follow from the others as what is best with them."""
    return [n for n in decisions(nodes) if n.op not in ("Skew", "Buffers")] or nodes


def _loops_that_give(graph: Graph, cls: int) -> set[int]:
    """The loops of which a class is a result: more than one where a loop has other forms."""
    return {n.payload[0] for n in graph.classes[cls] if n.op == "PProj"}
