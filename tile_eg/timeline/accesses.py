"""The accesses of a program to tensors in GM: how often each is done, by how many blocks, and which cores share one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from math import prod

import numpy as np

from tile_eg.ir.index import BLOCK, SUB, Expr, less, var, variables
from tile_eg.ir.program import Gm, Instr, Loop, Node, Program, Tasks, When
from tile_eg.ir.sharing import once
from tile_eg.ops.records import record
from tile_eg.timeline.arrays import sample, values
from tile_eg.timeline.expressions import compiled, largest
from tile_eg.timeline.filled import EVEN, filled
from tile_eg.timeline.guards import mean_trips


@record
class Access:
    """An instruction that touches a GM tensor: the loops (outermost first) and guards around it, its bytes in one trip of all.

    `blocks` is how many of the launch's run it and `halves` how many vector cores of a block, `means` how often loops run, by
    their variables, that do not always run as often. The first of `filled` is the share of its bytes that is moved, over all
    runs: tiles that a tensor's end cuts off have less, and guards leave trips out; the second one is that of runs that move what
    no other one does. One that is `past_l2` leaves L2 out.
    """

    instr: Instr
    window: Gm
    loops: tuple[Loop, ...]
    guards: tuple[Expr, ...]
    bytes: int
    reads: bool
    blocks: int
    halves: int
    means: Mapping[str, float] = field(default_factory=dict)
    past_l2: bool = False
    filled: tuple[float, float] = EVEN

    def times(self, loops: Iterable[Loop]) -> float:
        """How often it is done in all trips of these loops, on average."""
        return prod(self.means.get(v.var, v.trips) for v in loops)

    @property
    def runs(self) -> float:
        """How often the launch does it."""
        return self.blocks * self.times(self.loops)

    @property
    def moved(self) -> float:
        """Bytes that the launch moves by it."""
        return self.bytes * self.runs * self.filled[0]

    @property
    def new(self) -> float:
        """The same, what it moves again left out."""
        runs = (self.blocks if BLOCK in self.names else 1) * self.times(v for v in self.loops if self.varies(v))
        return self.bytes * runs * self.filled[1]

    def varies(self, loop: Loop) -> bool:
        return loop.var in self.names

    @cached_property
    def names(self) -> frozenset[str]:
        return variables(self.window.offset)


def accesses(program: Program) -> list[Access]:
    """Every access to a tensor, of both kinds of cores."""
    sizes = {t.name: t.dtype.bytes for t in program.in_gm}
    halves, means = 2 if program.halves else 1, mean_trips(program)
    found = (*_walk(program.cube, (), (), sizes, 1), *_walk(program.vector, (), (), sizes, halves))
    past, n = {t.name for t in program.tensors if t.past_l2}, program.blocks
    counted = (replace(a, means=means | _held(a, n), blocks=_running(a.guards, n)) for a in found)
    return [replace(a, filled=filled(a, n), past_l2=a.window.tensor in past) for a in counted]


def _held(a: Access, blocks: int) -> dict[str, float]:
    """Where a guard of its own tells tiles apart, as that of a load for the next tile does: in how many of a block's tiles it is
    done, by the variable of their loop."""
    tiles = next((v for v in a.loops if isinstance(v, Tasks)), None)
    if tiles is None or tiles.var not in variables(a.instr.when) or not variables(a.instr.when) <= {BLOCK, tiles.var}:
        return {}
    numbers, stand_for = sample(blocks)
    trips, turns = (n.reshape(-1, 1) for n in sample(tiles.trips, len(numbers)))
    env = {BLOCK: numbers, SUB: 0, tiles.var: trips}
    done = (values(a.instr.when, env) != 0) & (trips < values(tiles.until, env))
    return {tiles.var: float((done * turns * stand_for).sum()) / blocks}


def _running(guards: Sequence[Expr], blocks: int) -> int:
    """In how many blocks the guards hold that ask for nothing but the block."""
    asked = [g for g in guards if variables(g) == {BLOCK}]
    if not asked:
        return blocks
    numbers, stand_for = sample(blocks)
    hold = np.logical_and.reduce([values(g, {BLOCK: numbers}) != 0 for g in asked])
    return round(float((hold * stand_for).sum()))


def _walk(
    nodes: Sequence[Node], loops: tuple[Loop, ...], guards: tuple[Expr, ...], sizes: dict[str, int], halves: int
) -> Iterator[Access]:
    for node in nodes:
        if isinstance(node, Loop):
            until = () if node.until is None else (less(var(node.var), node.until),)
            yield from _walk(node.body, (*loops, node), (*guards, *until), sizes, halves)
        elif isinstance(node, When):
            yield from _walk(node.body, loops, (*guards, node.condition), sizes, halves)
        elif isinstance(node, Instr):
            for window, reads in ((node.dst, False), *((s, True) for s in node.srcs)):
                if isinstance(window, Gm):
                    size = at_start(node.rows) * at_start(node.cols) * sizes[window.tensor]
                    size *= halves if SUB in variables(window.offset) else 1
                    yield Access(node, window, loops, (*guards, node.when), size, reads, 0, halves)


def at_start(e: Expr) -> int:
    return e.args[0] if e.op == "const" else max(0, largest(e)(dict.fromkeys(variables(e), 0)))


def sharing(found: Sequence[Access], side_by_side: int) -> dict[int, float]:
    """How many cores read the same bytes at the same time, by `id` of the Instr, where `side_by_side` blocks run in step."""
    out = {}
    for a in found:
        if a.reads:
            offset, blocks = a.window.offset, _with_tasks(a, side_by_side)
            asked = partial(_starts, offset, blocks)
            starts = once("starts at once", (offset, blocks), asked) if BLOCK in a.names else 1
            out[id(a.instr)] = blocks / starts * (a.halves if SUB not in a.names else 1)
    return out


def _with_tasks(a: Access, blocks: int) -> int:
    """How many of the blocks, which are the first, get to an access in their first task: one that is launched only to meet the
    others may have none. At least one."""
    tasks = next((loop for loop in a.loops if isinstance(loop, Tasks)), None)
    return blocks if tasks is None else max(1, sum(compiled(tasks.until)({BLOCK: b, SUB: 0}) > 0 for b in range(blocks)))


def _starts(offset: Expr, blocks: int) -> int:
    """At how many places so many blocks begin to read, in the first trips."""
    start, env = compiled(offset), dict.fromkeys(variables(offset), 0)
    return len({start({**env, BLOCK: b}) for b in range(blocks)})
