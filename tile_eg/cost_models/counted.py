"""The instructions of a program and how often each is issued, counted without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tile_eg.chips import Chip
from tile_eg.ir.index import BLOCK, SUB, evaluate
from tile_eg.ir.program import Instr, Loop, Node, Program, When
from tile_eg.timeline.work import Work
from tile_eg.timeline.works import Pricer, blocks_at_once


def counted(program: Program, chip: Chip) -> list[tuple[Work, int]]:
    """Each instruction of one launch block as `Work`, with the times that it is issued.

    Sizes are those of the first block in the first trip of every loop, guards are taken.
    """
    pricer = Pricer(program, chip, min(program.blocks, blocks_at_once(program, chip)), {})
    sides = (program.cube, program.vector)
    return [(_work(pricer, i, env), times) for side in sides for i, times, env in _issued(side, 1, {BLOCK: 0, SUB: 0})]


def waves(program: Program, chip: Chip) -> int:
    """How often the cores are filled until all launch blocks have run."""
    return -(-program.blocks // blocks_at_once(program, chip))


def _issued(nodes: Sequence[Node], times: int, env: Mapping[str, int]) -> Iterator[tuple[Instr, int, Mapping[str, int]]]:
    for node in nodes:
        if isinstance(node, Loop):
            inner = {**env, node.var: 0}
            for let in getattr(node, "lets", ()):
                inner[let.name] = evaluate(let.value, inner)
            yield from _issued(node.body, times * node.trips, inner)
        elif isinstance(node, When):
            yield from _issued(node.body, times, env)
        elif isinstance(node, Instr):
            yield node, times, env


def _work(pricer: Pricer, instr: Instr, env: Mapping[str, int]) -> Work:
    return pricer.work(instr, *(evaluate(e, env) for e in (instr.rows, instr.cols, instr.depth)))
