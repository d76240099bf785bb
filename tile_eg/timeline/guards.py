"""What the guards of a stream make of its blocks: which of them work, and how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tile_eg.ir.index import BLOCK, ONE, Expr, variables
from tile_eg.ir.program import Instr, Loop, Node, Program, Tasks, When
from tile_eg.timeline.expressions import compiled

Count = Callable[[Mapping[str, int]], int]


def guarded(program: Program) -> bool:
    """Whether some guard depends on the block."""
    return program.blocks > 1 and any(BLOCK in variables(e) for nodes in _streams(program) for e in _conditions(nodes))


def mean_blocks(program: Program, at_once: int) -> float:
    """How many of the blocks that run side by side work at a time, on average: guards may leave some of them less to do."""
    tested = frozenset(
        n for nodes in _streams(program) for e in _conditions(nodes) if BLOCK in variables(e) for n in variables(e)
    )
    counts = [_counter(nodes, tested) for nodes in _streams(program)]
    work = [sum(count({BLOCK: b}) for count in counts) for b in range(min(program.blocks, at_once))]
    return sum(work) / max(1, *work)


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
