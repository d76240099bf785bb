"""Unit flags: a product's blocks of L0C go to the fixpipe, and come back to the next tile's, each as soon as it can.

Where a core goes through tiles and L0C holds one result, the last step of a tile and the first one of the next run along with the
fixpipe between them. The hardware orders the two pipes; no other flag does (docs/machine.md, clause 28).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from dataclasses import replace

from tile_eg.emit.lower.cuts import Cut, part
from tile_eg.emit.lower.storages import Storages
from tile_eg.extract import LoopStep, Schedule, Step
from tile_eg.ir.index import ONE, Expr, both, const, less, var
from tile_eg.ir.program import Gm, Instr, Loop, Node
from tile_eg.ops.physical import PRODUCTS
from tile_eg.ops.records import record
from tile_eg.ops.types import Level

ARCHITECTURE = "dav-2201"
KEPT, HANDED_OVER = 2, 3
"""The unit flag of an instruction behind which its own pipe, or the other one, may use the blocks."""


@record
class Handover:
    """The one product of a place in L0C that one fixpipe empties, and the loops around the product."""

    product: Step
    around: tuple[LoopStep, ...]


def handovers(schedule: Schedule, architecture: str) -> dict[int, Handover]:
    """The places in L0C that unit flags guard: a persistent kernel's, written by one product and emptied once a tile."""
    if not schedule.persistent or architecture != ARCHITECTURE or schedule.graph.values.tile_each:
        return {}
    writers: dict[object, list[Handover]] = defaultdict(list)
    readers: dict[object, list[tuple[Step, bool]]] = defaultdict(list)
    for step, around in schedule.walk():
        if step.node.op != "ZeroL0C":
            writers[step.dst].append(Handover(step, around))
        for s in step.srcs:
            if s != step.dst:
                readers[s].append((step, not around))
    counted = schedule.graph.values.counts  # of a loop whose trips the block decides, the last trip has no number
    single = [s.id for s in schedule.storages.values() if s.level is Level.L0C and s.slots == 1]
    return {s: writers[s][0] for s in single if _one_product(writers[s], counted) and _emptied_once(readers[s])}


def _one_product(writers: list[Handover], counted: Container[int]) -> bool:
    if len(writers) != 1 or writers[0].product.node.op not in PRODUCTS:
        return False
    return not any(x.skew or x.loop in counted for x in writers[0].around)


def _emptied_once(readers: list[tuple[Step, bool]]) -> bool:
    return len(readers) == 1 and readers[0][0].node.op.startswith("FixTo") and readers[0][1] and not readers[0][0].lag


def flag_of(storages: Storages, handover: Handover | None, cut: Cut, k: Expr) -> Expr:
    """The unit flag of step k in depth of a product: it hands its blocks over in the last trip of all loops."""
    if handover is None:
        return const(0)
    last = less(cut.steps_k - 2, k) if cut.steps_k > 1 else ONE
    for loop in handover.around:
        last = both(last, less(loop.trips - 2, var(storages.values.variables[loop.loop])) if loop.trips > 1 else ONE)
    return last + KEPT


def windows(made: Instr, name: str, cut: Cut, cols: int) -> list[Node]:
    """The fixpipe of the product `name` under unit flags: one for each window of its `cols` that its steps fill."""
    flagged = replace(made, unit=const(HANDED_OVER))
    if cut.steps_n == 1:
        return [flagged]
    index = var(f"{name}_n")
    return [Loop(str(index), cut.steps_n, (_window(flagged, index, cut, cols),))]


def _window(made: Instr, index: Expr, cut: Cut, cols: int) -> Instr:
    at = index * cut.n
    target = made.dst
    moved = replace(target, offset=target.offset + at) if isinstance(target, Gm) else replace(target, col=target.col + at)
    (source,) = made.srcs
    assert not isinstance(source, Gm)
    return replace(made, dst=moved, srcs=(replace(source, col=source.col + at),), cols=part(made.cols, index, cut.n, cols))
