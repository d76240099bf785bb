"""What is part of every choice: the classes that a class cannot be computed without, whichever nodes are chosen below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import and_, or_
from weakref import WeakKeyDictionary

from tile_eg.egraph import Graph, Node
from tile_eg.ops.physical import ALIASES, OVERWRITES, STRUCTURE


class Needs:
    """Sets of classes as the bits of a number: class c is `1 << c`."""

    def __init__(self, graph: Graph) -> None:
        self.of_class = in_all_ways(graph, {}, lambda c: 1 << c)
        self.of_node = [reduce(or_, (self.of_class[c] for c in n.children), 0) for n in graph.nodes]

    def of(self, node: Node) -> int:
        """The classes that are computed before a node, in any choice with it. What went around a loop is none of them."""
        return self.of_node[node.index]

    def before(self, first: int, node: Node) -> bool:
        """Whether class `first` is computed before a node in any choice with both."""
        return bool(self.of(node) >> first & 1)


def members(bits: int) -> Iterator[int]:
    """The classes of a set, the smallest first."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def in_all_ways(graph: Graph, own: Mapping[Node, int], of_class: Callable[[int], int] = lambda c: 0) -> list[int]:
    """For each class the bits that all ways to compute it have in common: a node has `own` ones and those of its operands, a
    class those of all its nodes and some `of_class`."""
    everything = reduce(or_, own.values(), reduce(or_, map(of_class, graph.classes), 0))
    out = [everything] * len(graph.classes)
    users: dict[int, set[int]] = defaultdict(set)
    for n in graph.nodes:
        for c in n.children:
            users[c].add(n.cls)
    todo = dict.fromkeys(range(len(out) - 1, -1, -1))
    while todo:
        cls = next(iter(todo))
        del todo[cls]
        ways = (reduce(or_, (out[c] for c in n.children), own.get(n, 0)) for n in graph.classes[cls])
        found = reduce(and_, ways) | of_class(cls)
        if found != out[cls]:
            out[cls] = found
            todo |= dict.fromkeys(users[cls])
    return out


_known: WeakKeyDictionary[Graph, Needs] = WeakKeyDictionary()


def needs_of(graph: Graph) -> Needs:
    """Found once for a graph."""
    if graph not in _known:
        _known[graph] = Needs(graph)
    return _known[graph]


def read_too_late(graph: Graph) -> Iterator[tuple[Node, ...]]:
    """Nodes of which no choice may have all: what one reads is written over before, by what it is computed from."""
    needs, readers = needs_of(graph), readers_of(graph)
    for nodes, writer, value in (*_overwritten(graph), *_states_in_place(graph)):
        yield from (tuple(dict.fromkeys((*nodes, m))) for m in readers[value] if needs.before(writer, m))


def readers_of(graph: Graph) -> dict[int, list[Node]]:
    """The nodes that read each class."""
    out: dict[int, list[Node]] = defaultdict(list)
    for n in graph.nodes:
        for c in set(n.children):
            out[c].append(n)
    return out


Overwritten = tuple[tuple[Node, ...], int, int]
"""Nodes with which a class, when it is computed, writes over another one."""


def _overwritten(graph: Graph) -> Iterator[Overwritten]:
    """By an instruction that takes the place of an operand."""
    for n in (n for n in graph.nodes if n.op in OVERWRITES):
        over = n.children[OVERWRITES[n.op]]
        yield (n,), n.cls, over
        yield from (((n, q), n.cls, q.children[0]) for q in graph.classes[over] if q.op == "Give")


def _states_in_place(graph: Graph) -> Iterator[Overwritten]:
    """A state of a loop by the next one, which is made in its place; or by what that is made over, which is there before."""
    held: dict[tuple, list[Node]] = defaultdict(list)
    for n in graph.nodes:
        if n.op == "PArg":
            held[n.payload[:2]].append(n)
    for n in (n for n in graph.nodes if n.op == "NextIn"):
        for nodes, writer in _first_written(graph, (n,), n.children[0], n.payload[0]):
            yield from (((*nodes, q), writer, q.cls) for q in held[n.payload[:2]])


def _first_written(graph: Graph, nodes: tuple[Node, ...], cls: int, loop: int) -> Iterator[tuple[tuple[Node, ...], int]]:
    """What is written into a cell in a trip of a loop, and with which nodes: a class, and those that it is made over."""
    made = graph.classes[cls]
    if any(n.op in ALIASES or n.op in STRUCTURE or n.region != loop for n in made) or any(n.cls == cls for n in nodes):
        return
    yield nodes, cls
    for n in (n for n in made if n.op in OVERWRITES):
        over = n.children[OVERWRITES[n.op]]
        yield from _first_written(graph, (*nodes, n), over, loop)
        for q in (q for q in graph.classes[over] if q.op == "Give"):
            yield from _first_written(graph, (*nodes, n, q), q.children[0], loop)
