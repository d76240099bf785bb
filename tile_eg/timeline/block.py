"""One block: its cores, run against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_eg.ir.index import BLOCK, ONE, SUB, bounds
from tile_eg.ir.machine import cores as cores_of
from tile_eg.ir.program import AIC, AIV, Instr, Loop, Node, Program, Tasks
from tile_eg.timeline.cores import Core, Handover, Record, Span, StreamError
from tile_eg.timeline.expressions import Settler
from tile_eg.timeline.steady import Together
from tile_eg.timeline.steps import add_steps
from tile_eg.timeline.works import Pricer


@dataclass(frozen=True)
class Block:
    """One block in cycles: its length, what each (core, pipe) was busy, bytes by path, and of HBM by (core, tensor, written)."""

    cycles: float
    busy: dict[tuple[str, str], float]
    bytes: dict[str, float]
    tensors: dict[tuple[str, str, bool], float]
    extrapolated: bool = False
    spans: tuple[Span, ...] = ()
    handovers: tuple[Handover, ...] = ()


def run_block(program: Program, pricer: Pricer, block: int, *, exact: bool = False, record: bool = False) -> Block:
    """Block number `block`. `exact` runs every trip of every loop, `record` keeps when each instruction ran."""
    kept = Record() if record else None
    cores = []
    for name, nodes in ((AIC, program.cube), (AIV, program.vector)):
        if nodes:
            cores.append(Core(name, pricer.chip, {BLOCK: block, SUB: 0}, kept))
            cores[-1].settle = Settler(nodes, cores[-1].env)
            add_steps(cores[-1], nodes, pricer, exact=exact)
    run_cores(cores, exact=exact)
    twice = 2 if program.halves or cores_of(program.kernel_type)[1] == 2 else 1
    return summed(cores, {AIC: 1, AIV: twice}, kept)


def least_busy(program: Program, pricer: Pricer) -> dict[tuple[str, str], float]:
    """Cycles by (core, pipe) of the block with the most tiles, in instructions that surely run, at their smallest sizes."""
    out: dict[tuple[str, str], float] = {}
    for core, nodes in ((AIC, program.cube), (AIV, program.vector)):
        ranges = Settler(nodes, {BLOCK: 0, SUB: 0}).ranges
        for i, times in _surely_run(nodes, 1):
            rows, cols, depth = (bounds(e, ranges)[0] for e in (i.rows, i.cols, i.depth))
            if min(rows, cols, depth) > 0:
                out[core, i.pipe] = out.get((core, i.pipe), 0.0) + times * pricer.price(i, rows, cols, depth).busy
    return out


def _surely_run(nodes: Sequence[Node], times: int) -> Iterator[tuple[Instr, int]]:
    """The instructions that no guard may leave out, and how often each runs."""
    for n in nodes:
        if isinstance(n, Instr) and n.when == ONE:
            yield n, times
        elif isinstance(n, Loop) and (n.until is None or isinstance(n, Tasks)):
            yield from _surely_run(n.body, times * n.trips)


def run_cores(cores: Sequence[Core], *, exact: bool = True) -> None:
    """Runs the cores of one block against each other. StreamError names every wait that nothing satisfies."""
    for core in cores:
        core.partners = [other for other in cores if other.kind != core.kind]
        core.peers = {other.name: other for other in cores}
    together = Together(cores) if len(cores) > 1 and not exact else None
    while max((core.advance() for core in cores), default=False):
        if together:
            together.round()
    stuck = [text for core in cores for text in core.stuck()]
    if stuck:
        raise StreamError("deadlock: " + "; ".join(stuck))


def summed(cores: Sequence[Core], weight: dict[str, int], kept: Record | None) -> Block:
    """What the cores did; `weight` says how many cores of a kind did the same."""
    moved: dict[str, float] = {}
    tensors: dict[tuple[str, str, bool], float] = {}
    for core in cores:
        for path, n in core.bytes.items():
            moved[path] = moved.get(path, 0) + n * weight[core.name]
        for (tensor, written), missed in core.tensors.items():
            key = core.kind, tensor, written
            tensors[key] = tensors.get(key, 0) + missed * weight[core.name]
    busy = {(c.name, pipe): n for c in cores for pipe, n in c.busy.items()}
    cycles = max((c.end for c in cores), default=0.0)
    record = kept or Record()
    jumped = any(c.jumped for c in cores)
    return Block(cycles, busy, moved, tensors, jumped, tuple(record.spans), tuple(record.handovers))
