"""The last trips of loops on their own, where their tiles are short and the others' are not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values, reachable
from tile_eg.search.bounds import timing
from tile_eg.search.candidates import Candidate
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.transforms.last_trip import with_last_trips_apart

V = ("AIV", "V")
LEAST = 0.25
"""The least part of the vector instructions' time that whole tiles in one run may take of it (assumed)."""


def offers(form: Form) -> Iterator[Offer]:
    """The form of a kernel of vector cores with its last trips apart, where there are short ones."""
    if form.moves or any(t.op == "matmul" for t in reachable(form.values)) or form.best is None:
        return
    if values := with_last_trips_apart(form.values):
        yield Offer(MOVES["last-trip"], "apart", _bound(form.best), partial(_made, form, values), form)


def _bound(best: Candidate) -> float:
    """What is left where vector instructions take the least that they may, or the busiest of the other pipes'."""
    time = timing(best)
    others = max((n for pipe, n in time.busy.items() if pipe != V), default=0.0)
    cycles = time.block_cycles - (1 - LEAST) * time.busy.get(V, 0.0)
    part = max(others, cycles) / time.block_cycles if time.block_cycles else 1.0
    return best.microseconds * (time.launch_us + part * time.core_us) / time.microseconds


def _made(form: Form, values: Values) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, values, ("last-trip apart",)))
