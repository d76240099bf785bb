"""Side by side: where instructions of the vector cores wait for one another, those of two trips, or of two blocks, take turns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values, reachable
from tile_eg.search import trips_in_blocks
from tile_eg.search.bounds import bound_of
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.options import Effort
from tile_eg.search.queue import Made, Offer
from tile_eg.transforms.side_by_side import blocks_side_by_side, trips_side_by_side

MOVE = MOVES["side-by-side"]
WAITING = 1.1
"""Times what the pipes of a schedule need at the least, beyond which instructions are said to wait for one another (assumed)."""
TWO = 2
"""Trips or blocks that take turns: four gained nothing more where they were tried."""
WITHIN = (("work", 0.3), ("total", 1.0))
"""What its solves may take. What is decided of one trip may be decided of the other as well, so that many choices are alike, and
to prove which is best takes a minute; the best that is found so far was the same where both were tried."""


def offers(form: Form) -> Iterator[Offer]:
    """Of a kernel as it is written, or whose blocks share their trips."""
    v = form.values
    if any(not move.startswith(trips_in_blocks.NAME) for move in form.moves) or not form.candidates:
        return
    if v.shared or v.sizes or v.deeper or any(t.op == "matmul" for t in reachable(v)) or any(p.slots for p in v.places.values()):
        return
    if (values := _values(v, form.setting.chip.vector_cores)) is not None:
        yield Offer(MOVE, str(TWO), 0.0, partial(_made, form, values), form, closer=partial(_bound, form))


def _values(v: Values, cores: int) -> Values | None:
    """Trips, or else blocks where all cores still have one."""
    if (made := trips_side_by_side(v, TWO)) is not None:
        return made
    able = (blocks_side_by_side(v, along, TWO) for along in range(len(v.grid))) if v.blocks >= TWO * cores else ()
    return next((made for made in able if made is not None), None)


def _bound(form: Form) -> float:
    """What the pipes of the best schedule need at the least; without end where it hardly takes longer."""
    best = form.best
    least = bound_of(best.planned, best) if best else 0.0
    return least if form.microseconds > WAITING * least else float("inf")


def _made(form: Form, values: Values) -> Made:
    extractor, settings = form.setting.options.found_by
    own = Effort(form.setting.options.schedules, extractor, WITHIN) if extractor == "exact" and not settings else None
    moves = (*form.moves, f"{MOVE.name} {TWO}")
    made = searched(form.kernel, form.source, form.setting, values, moves, effort=own, resort=False)
    return Made(form=made)
