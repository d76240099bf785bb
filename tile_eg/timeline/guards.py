"""What the guards of a stream make of its blocks: which of them work, and how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tile_eg.ir.index import BLOCK, ONE, Expr, variables
from tile_eg.ir.program import Instr, Loop, Node, Program, Tasks, When
from tile_eg.timeline.expressions import compiled

Count = Callable[[Mapping[str, int]], int]


SAMPLED_BLOCKS = 64


@dataclass(frozen=True)
class Loads:
    """How the work of a launch lies on its blocks, where guards leave some of them less to do than others.

    `mean` is how many of the blocks that run side by side work at a time, on average; `heavy` are those to time, the slowest one
    among them: the first, which has whole tiles, and the one with the most instructions.
    """

    mean: float
    heavy: tuple[int, ...]


def loads(program: Program, at_once: int) -> Loads:
    """Of a launch that runs `at_once` blocks side by side; of many blocks a sample is looked at."""
    side_by_side = min(program.blocks, at_once)
    conditions = [variables(e) for nodes in _streams(program) for e in _conditions(nodes)]
    tested = frozenset[str]().union(*(names for names in conditions if BLOCK in names))
    if program.blocks == 1 or not tested:
        return Loads(side_by_side, (0,))
    counts = [_counter(nodes, tested) for nodes in _streams(program)]
    step = max(1, program.blocks // SAMPLED_BLOCKS)
    blocks = sorted({*range(side_by_side), *range(0, program.blocks, step), program.blocks - 1})
    work = {b: sum(count({BLOCK: b}) for count in counts) for b in blocks}
    most, first = max(blocks, key=lambda b: work[b]), [work[b] for b in range(side_by_side)]
    return Loads(sum(first) / max(1, *first), (0,) if work[0] == work[most] else (0, most))


def _streams(program: Program) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    return program.cube, program.vector


def _conditions(nodes: Sequence[Node]) -> Iterator[Expr]:
    for node in nodes:
        if isinstance(node, When | Instr):
            yield node.condition if isinstance(node, When) else node.when
        if isinstance(node, Tasks):
            yield node.until
        if isinstance(node, Loop | When):
            yield from _conditions(node.body)


def _counter(nodes: Sequence[Node], tested: frozenset[str]) -> Count:
    """Instructions of a block as a function of its index; only guards of it, and of loops around them, are looked at."""
    plain, parts = 0, []
    for node in nodes:
        if isinstance(node, Instr) and not _looked_at(node.when, tested):
            plain += 1
        elif isinstance(node, Instr):
            parts.append(compiled(node.when))
        elif isinstance(node, Loop | When):
            parts.append(_nested(node, _counter(node.body, tested), tested))
    return lambda env: plain + sum([part(env) for part in parts])


def _nested(node: Loop | When, inside: Count, tested: frozenset[str]) -> Count:
    if isinstance(node, When):
        holds = compiled(node.condition if _looked_at(node.condition, tested) else ONE)
        return lambda env: inside(env) if holds(env) else 0
    trips = compiled(node.until) if isinstance(node, Tasks) else None
    if node.var in tested:
        return lambda env: sum([inside({**env, node.var: k}) for k in range(trips(env) if trips else node.trips)])
    return lambda env: (trips(env) if trips else node.trips) * inside(env)


def _looked_at(condition: Expr, tested: frozenset[str]) -> bool:
    names = variables(condition)
    return BLOCK in names and names <= tested
