"""Which part of what a program reads comes from HBM and which from L2, told from its loops and index expressions.

A load whose address does not depend on a loop's variable brings the same bytes in every trip: L2 still holds them when all that
the cores touch in one trip fits into it, and has lost them when it does not (it forgets what was used longest ago, as the public
measurements of repeated copies show: no hits at 302 MB, all of them at 75 MB).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from tile_eg.chips import Chip
from tile_eg.ir.index import BLOCK, SUB, Expr, evaluate, variables
from tile_eg.ir.program import Gm, Instr, Loop, Node, Program, When

SAMPLED_BLOCKS = 256


@dataclass(frozen=True)
class Access:
    """An instruction that touches a GM tensor: the loops around it, outermost first, and its bytes in one trip of all of them."""

    instr: Instr
    window: Gm
    loops: tuple[Loop, ...]
    bytes: int
    reads: bool

    def varies(self, loop: Loop) -> bool:
        return loop.var in self.names

    @cached_property
    def names(self) -> frozenset[str]:
        return variables(self.window.offset)

    def starts(self, blocks: int) -> int:
        """How many different addresses the first `blocks` blocks begin with (extrapolated beyond a sample of them)."""
        if BLOCK not in self.names:
            return 1
        sample = min(blocks, SAMPLED_BLOCKS)
        env = dict.fromkeys(self.names, 0)
        seen = {evaluate(self.window.offset, env | {BLOCK: b}) for b in range(sample)}
        return round(len(seen) * blocks / sample)


def accesses(program: Program) -> list[Access]:
    """Every access to a tensor, of both kinds of cores."""
    sizes = {t.name: t.dtype.bytes for t in program.tensors}
    return [*_walk(program.cube, (), sizes, 1), *_walk(program.vector, (), sizes, 2 if program.halves else 1)]


def _walk(nodes: Sequence[Node], loops: tuple[Loop, ...], sizes: dict[str, int], halves: int) -> Iterator[Access]:
    for node in nodes:
        if isinstance(node, Loop):
            yield from _walk(node.body, (*loops, node), sizes, halves)
        elif isinstance(node, When):
            yield from _walk(node.body, loops, sizes, halves)
        elif isinstance(node, Instr):
            for window, reads in ((node.dst, False), *((s, True) for s in node.srcs)):
                if isinstance(window, Gm):
                    size = _at_start(node.rows) * _at_start(node.cols) * sizes[window.tensor]
                    yield Access(node, window, loops, size * (halves if SUB in variables(window.offset) else 1), reads)


def _at_start(e: Expr) -> int:
    return e.args[0] if e.op == "const" else max(0, evaluate(e, dict.fromkeys(variables(e), 0)))


def misses(program: Program, l2_bytes: int, at_once: int) -> dict[int, float]:
    """The share of its bytes that each load brings from HBM, by `id` of its Instr; `at_once` blocks run side by side."""
    found = accesses(program)
    tensors = {t.name: t.dtype.bytes * prod(t.shape) for t in program.tensors}
    loads = [a for a in found if a.reads]
    if sum(tensors[name] for name in {a.window.tensor for a in found}) <= l2_bytes:
        return _once(loads, tensors, program.blocks)
    return _Reuse(found, tensors, l2_bytes, program.blocks, at_once).shares(loads)


def _once(loads: list[Access], tensors: dict[str, int], blocks: int) -> dict[int, float]:
    """All of it fits into L2: every byte comes from HBM once."""
    read, new = dict.fromkeys(tensors, 0), dict.fromkeys(tensors, 0)
    for a in loads:
        read[a.window.tensor] += blocks * a.bytes * prod(v.trips for v in a.loops)
        new[a.window.tensor] += (blocks if BLOCK in a.names else 1) * a.bytes * prod(v.trips for v in a.loops if a.varies(v))
    return {id(a.instr): min(1.0, min(new[name], tensors[name]) / max(1, read[name])) for a in loads if (name := a.window.tensor)}


class _Reuse:
    """What the cores touch in one trip of each loop, against what L2 holds."""

    def __init__(self, found: list[Access], tensors: dict[str, int], l2_bytes: int, blocks: int, at_once: int) -> None:
        self.found, self.tensors, self.l2_bytes, self.blocks = found, tensors, l2_bytes, blocks
        self.at_once = min(blocks, at_once)
        self.starts = {id(a): a.starts(self.at_once) for a in found}
        self.held: dict[int, bool] = {}

    def shares(self, loads: list[Access]) -> dict[int, float]:
        return {id(a.instr): self._wave_share(a) * self._loop_share(a) for a in loads}

    def _loop_share(self, a: Access) -> float:
        again = (v.trips for i, v in enumerate(a.loops) if not a.varies(v) and self._fits(a.loops[: i + 1]))
        return self.starts[id(a)] / self.at_once / max(1, prod(again))

    def _wave_share(self, a: Access) -> float:
        if self.blocks == self.at_once or not self._fits(()):
            return 1.0
        return min(1.0, a.starts(self.blocks) / self.starts[id(a)] * self.at_once / self.blocks)

    def _fits(self, outer: tuple[Loop, ...]) -> bool:
        """Whether L2 holds what all cores touch in one trip of the innermost of `outer` (none: in a whole block)."""
        key = id(outer[-1]) if outer else 0
        if key not in self.held:
            self.held[key] = self._touched(outer) <= self.l2_bytes
        return self.held[key]

    def _touched(self, outer: tuple[Loop, ...]) -> int:
        total: dict[str, int] = {}
        for a in self.found:
            if len(a.loops) >= len(outer) and all(mine is loop for mine, loop in zip(a.loops, outer, strict=False)):
                trips = prod(v.trips for v in a.loops[len(outer) :] if a.varies(v))
                total[a.window.tensor] = total.get(a.window.tensor, 0) + a.bytes * trips * self.starts[id(a)]
        return sum(min(n, self.tensors[name]) for name, n in total.items())


def read_share(program: Program, missed: dict[int, float]) -> float:
    """Which part of what HBM moves is read; 1 where nothing is written."""
    moved = {True: 0.0, False: 0.0}
    for a in accesses(program):
        moved[a.reads] += a.bytes * prod(v.trips for v in a.loops) * (missed.get(id(a.instr), 1.0) if a.reads else 1.0)
    return moved[True] / sum(moved.values()) if moved[False] else 1.0


def with_reads(chip: Chip, share: float) -> Chip:
    """The chip as a kernel meets it whose reads are this share of what HBM moves."""
    shared = chip.shared
    return (
        replace(chip, shared=replace(shared, hbm_read=min(shared.hbm_read, shared.hbm_mixed * share))) if 0 < share < 1 else chip
    )
