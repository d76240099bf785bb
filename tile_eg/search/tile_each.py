"""A tile for each vector core, where both would do the same work on one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from tile_eg.ir.program import AIV
from tile_eg.ir.values import Values
from tile_eg.search import solved_by_columns
from tile_eg.search.bounds import timing
from tile_eg.search.candidates import Candidate
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.transforms.tile_each import tile_each

NAME = "tile-a-vector-core"
LEAST = 0.3
"""Of a block's time, what both vector cores have to do on the same tile for the move to be tried (assumed)."""


def offers(form: Form) -> Iterator[Offer]:
    """Of a kernel as it is written, or whose systems are solved by columns, with more tiles than there are cube cores."""
    if any(move != solved_by_columns.NAME for move in form.moves) or not form.candidates:
        return
    values = tile_each(form.values)
    if values is not None and form.values.blocks > form.setting.chip.cube_cores:
        yield Offer(MOVES[NAME], "the kernel", 0.0, partial(_made, form, values), form, closer=partial(_bound, form))


def _made(form: Form, values: Values) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, values, (*form.moves, NAME)))


def _bound(form: Form) -> float:
    """What the best schedule would take if work that both vector cores do took half of its time, and nothing waited for it;
    without end where there is little of that."""
    best = form.best
    return best.microseconds * (1 - twice(best) / 2) if best and twice(best) > LEAST else float("inf")


def twice(candidate: Candidate) -> float:
    """Of a block's time, the part in which V of both vector cores does the same work."""
    schedule, whole, total = candidate.schedule, 0, 0
    for step, around in schedule.walk():
        if step.pipe == f"{AIV}.V":
            cycles = step.cycles * prod(loop.trips for loop in around)
            total += cycles
            whole += cycles if schedule.graph.demands[step.node.cls].share is None else 0
    return timing(candidate).share(AIV, "V") * whole / max(1, total)
