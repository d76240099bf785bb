"""Which value of the kernel the result of a step stands for."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.egraph import Demand
from tile_eg.emit.lower.storages import Storages
from tile_eg.extract import LoopStep, Step
from tile_eg.ir.index import Expr, minimum, var
from tile_eg.ir.program.held import Held
from tile_eg.ir.values import Term
from tile_eg.ops.physical import ADDING

Trips = tuple[tuple[str, Expr], ...]


def held_by(storages: Storages, step: Step, around: Sequence[LoopStep]) -> Held | None:
    """What the step's result holds, in the trips of the loops around it; None where that is no value of the kernel's."""
    demands = storages.schedule.graph.demands
    where, trips = demands.get(step.node.cls), _trips(storages, around)
    if where is None:
        return Held(None, trips) if isinstance(step.dst, str) else None
    term = where.tile.term
    if term is None or (term.rows, term.cols, term.dtype) != (where.tile.rows, where.tile.cols, where.tile.dtype):
        return None
    if term.op == "matmul" and where.tile.depth != _depth(term):
        return None  # a part of it
    if any(loop.loop in storages.values.deeper for loop in around) and step.node.op not in ADDING:
        return None  # of several trips of the source's loop; a sum is then that after the last of them
    return Held(term, trips, share=_share(where, step, demands))


def _depth(product: Term) -> int:
    a, _, transposed, _ = product.args
    return a.rows if transposed else a.cols


def _trips(storages: Storages, around: Sequence[LoopStep]) -> Trips:
    """The trips of the source's loops: of several that are one, the last."""
    names, deeper, out = storages.values.variables, storages.values.deeper, list[tuple[str, Expr]]()
    for loop in around:
        source, factor = deeper.get(loop.loop, (loop.loop, 1))
        trip = var(names[loop.loop])
        last = minimum((trip + 1) * factor, storages.values.trips[source]) - 1 if factor > 1 else trip
        out.append((names[source], last))
    return tuple(out)


def _share(where: Demand, step: Step, demands: dict[int, Demand]) -> int | None:
    """The axis along which a vector core has its half: of the result, or of what it brings to where the result lies whole."""
    if where.share is not None or step.core == "AIC":
        return where.share
    sources = (demands[c] for c in step.node.children if c in demands)
    return next((s.share for s in sources if s.tile == where.tile and s.level == "UB" != where.level), None)
