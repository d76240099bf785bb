"""Which value of the kernel the result of a step stands for."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.egraph import Demand
from tile_eg.emit.lower.storages import Storages
from tile_eg.extract import LoopStep, Step
from tile_eg.ir.index import var
from tile_eg.ir.program.held import Held


def held_by(storages: Storages, step: Step, around: Sequence[LoopStep]) -> Held | None:
    """What the step's result holds, in the trips of the loops around it; None where that is no value of the kernel's."""
    demands, names = storages.schedule.graph.demands, storages.values.variables
    trips = tuple((names[loop.loop], var(names[loop.loop])) for loop in around)
    where = demands.get(step.node.cls)
    if where is None:
        return Held(None, trips) if isinstance(step.dst, str) else None
    term = where.tile.term
    if term is None or (term.rows, term.cols, term.dtype) != (where.tile.rows, where.tile.cols, where.tile.dtype):
        return None
    return Held(term, trips, share=_share(where, step, demands))


def _share(where: Demand, step: Step, demands: dict[int, Demand]) -> int | None:
    """The axis along which a vector core has its half: of the result, or of what it brings to where the result lies whole."""
    if where.share is not None or step.core == "AIC":
        return where.share
    sources = (demands[c] for c in step.node.children if c in demands)
    return next((s.share for s in sources if s.tile == where.tile and s.level == "UB" != where.level), None)
