"""A program of any size at some sizes: all its numbers known, as the timeline takes it and a launch needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tile_eg.ir.index import BLOCK, SUB, Expr, bounds, const, evaluate, substitute
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program.instructions import Let, Loop, Node, Tasks, When
from tile_eg.ir.program.program import Program
from tile_eg.ir.program.tasks import renamed
from tile_eg.ir.sizes import Sizes, usual


def at_sizes(program: Program, sizes: Mapping[str, int] | None = None) -> Program:
    """The program with numbers in place of its sizes, by default those that it is priced at; one that has none is itself."""
    held = program.sizes
    if held is None:
        return program
    numbers = dict(held.usual) if sizes is None else dict(sizes)
    meaning = {name: const(numbers[name]) for name in held.names}
    shapes = (tuple(evaluate(e, numbers) for e in shape) for shape in held.shapes)
    blocks = evaluate(held.blocks, numbers)
    lets = tuple(_let(let, meaning, blocks) for let in program.lets)
    streams = (_Fixed(meaning, lets, blocks).nodes(renamed(nodes, meaning)) for nodes in (program.cube, program.vector))
    cube, vector = streams
    shared = tuple(_shared(t, held.at(numbers)) for t in program.shared)
    tensors = tuple(replace(t, shape=shape) for t, shape in zip(program.tensors, shapes, strict=True))
    return replace(program, tensors=tensors, shared=shared, blocks=blocks, cube=cube, vector=vector, lets=lets, sizes=None)


def _let(let: Let, meaning: Mapping[str, Expr], blocks: int) -> Let:
    value = substitute(let.value, meaning)
    return replace(let, value=value, most=_most(value, {BLOCK: (0, max(0, blocks - 1)), SUB: (0, 1)}))


def _most(e: Expr, ranges: Mapping[str, tuple[int, int]]) -> int:
    return max(0, bounds(e, ranges)[1])


def resized(program: Program, sizes: Mapping[str, int]) -> Program:
    """The program of any size with these as its usual ones: the same text, with the blocks and tensors of a launch at them."""
    assert program.sizes is not None
    held = program.sizes.at(sizes)
    shapes = (tuple(map(usual, shape)) for shape in held.shapes)
    tensors = tuple(replace(t, shape=shape) for t, shape in zip(program.tensors, shapes, strict=True))
    shared = tuple(_shared(t, held) for t in program.shared)
    return replace(program, tensors=tensors, shared=shared, blocks=usual(held.blocks), sizes=held)


def _shared(t: Tensor, held: Sizes) -> Tensor:
    """A tensor that blocks share, as it is at the usual sizes."""
    return replace(t, shape=tuple(map(usual, dict(held.shared).get(t.name, t.shape))))


class _Fixed:
    """Loops with the most trips that they have, and windows with the distance of their rows, as numbers."""

    def __init__(self, meaning: Mapping[str, Expr], lets: tuple[Let, ...], blocks: int) -> None:
        self.meaning = meaning
        self.ranges = {BLOCK: (0, max(0, blocks - 1)), SUB: (0, 1), **{let.name: (0, let.most) for let in lets}}

    def nodes(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(map(self.node, nodes))

    def node(self, n: Node) -> Node:
        if isinstance(n, Tasks):
            return self._tasks(n)
        if isinstance(n, Loop):
            trips = n.trips if n.until is None else _most(n.until, self.ranges)
            return replace(n, trips=trips, body=self.nodes(n.body))
        return replace(n, body=self.nodes(n.body)) if isinstance(n, When) else n

    def _tasks(self, n: Tasks) -> Tasks:
        self.ranges[n.var] = (0, max(0, _most(n.until, self.ranges) - 1))
        lets = []
        for let in n.lets:
            value = substitute(let.value, self.meaning)
            lets.append(replace(let, value=value, most=_most(value, self.ranges)))
            self.ranges[let.name] = (0, lets[-1].most)
        return replace(n, trips=_most(n.until, self.ranges), lets=tuple(lets), body=self.nodes(n.body))
