"""The instructions of a program and how often each is issued, counted without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from tile_eg.chips import Chip
from tile_eg.ir.index import BLOCK, SUB, Expr, evaluate, variables
from tile_eg.ir.program import Instr, Loop, Node, Program, When
from tile_eg.ir.program.any_size import at_sizes
from tile_eg.ir.program.tasks import inlined
from tile_eg.ops.records import record
from tile_eg.timeline.arrays import values
from tile_eg.timeline.work import Work
from tile_eg.timeline.works import Pricer, blocks_at_once

MOST_TRIPS = 100_000
"""Trips of all loops that a condition looks at, of which each is tried."""


@record
class Issued:
    """An instruction of one launch block with its sizes, how often it is issued, and the variables of the loops around it."""

    instr: Instr
    work: Work
    times: float
    loops: tuple[str, ...]


def counted(program: Program, chip: Chip) -> list[tuple[Work, float]]:
    """Each instruction of one launch block as `Work`, with the times that it is issued."""
    return [(i.work, i.times) for i in issued(program, chip)]


def issued(program: Program, chip: Chip) -> list[Issued]:
    """The instructions of one launch block: those of the cube core, then those of the vector core, in their order.

    Sizes are those of the first block in the first trip of every loop. Guards count by the part of the trips in which they hold.
    """
    program = inlined(at_sizes(program))
    pricer = Pricer(program, chip, min(program.blocks, blocks_at_once(program, chip)), {})
    sides, start = (program.cube, program.vector), {BLOCK: 0, SUB: 0}
    found = (item for side in sides for item in _issued(side, 1, start, ()))
    return [Issued(i, _work(pricer, i, env), times, loops) for i, times, env, loops in found]


def waves(program: Program, chip: Chip) -> int:
    """How often the cores are filled until all launch blocks have run."""
    return -(-program.blocks // blocks_at_once(program, chip))


def _issued(
    nodes: Sequence[Node], times: float, env: Mapping[str, int], loops: tuple[Loop, ...]
) -> Iterator[tuple[Instr, float, Mapping[str, int], tuple[str, ...]]]:
    for node in nodes:
        if isinstance(node, Loop):
            inner = {**env, node.var: 0}
            for let in getattr(node, "lets", ()):
                inner[let.name] = evaluate(let.value, inner)
            yield from _issued(node.body, times * node.trips, inner, (*loops, node))
        elif isinstance(node, When):
            yield from _issued(node.body, times * _share(node.condition, env, loops), env, loops)
        elif isinstance(node, Instr):
            yield node, times * _share(node.when, env, loops), env, tuple(loop.var for loop in loops)


def _share(condition: Expr, env: Mapping[str, int], loops: Sequence[Loop]) -> float:
    """In which part of the trips a condition holds that looks at loops alone; that of anything else is taken to hold."""
    tested = {loop.var: loop.trips for loop in loops if loop.var in variables(condition)}
    if not tested or not variables(condition) <= env.keys() or prod(tested.values()) > MOST_TRIPS:
        return 1.0
    axes = np.meshgrid(*map(np.arange, tested.values()), indexing="ij")
    return float(np.mean(values(condition, {**env, **dict(zip(tested, axes, strict=True))}) != 0))


def _work(pricer: Pricer, instr: Instr, env: Mapping[str, int]) -> Work:
    return pricer.work(instr, *(evaluate(e, env) for e in (instr.rows, instr.cols, instr.depth)))
