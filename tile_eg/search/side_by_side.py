"""Side by side: where instructions of the vector cores wait for one another, two trips, or two blocks, take turns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values, reachable
from tile_eg.search.bounds import bound_of
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.transforms.side_by_side import blocks_side_by_side, trips_side_by_side

MOVE = MOVES["side-by-side"]
WAITING = 1.1
"""Times what the pipes of a schedule need at the least, beyond which instructions are said to wait for one another (assumed)."""
MOST = 4
"""Trips or blocks that take turns (assumed): UB holds the tiles of all of them."""


def offers(form: Form) -> Iterator[Offer]:
    """Of a kernel as it is written two trips or blocks, of one with these twice as many."""
    v, count = form.values, 2 * _times(form)
    if not 1 < count <= MOST or not form.candidates or v.shared or v.sizes or v.deeper:
        return
    if any(t.op == "matmul" for t in reachable(v)) or any(p.slots for p in v.places.values()):
        return
    if (values := _values(form.source, count, form.setting.chip.vector_cores)) is not None:
        yield Offer(MOVE, str(count), 0.0, partial(_made, form, count, values), form, closer=partial(_bound, form))


def _values(v: Values, count: int, cores: int) -> Values | None:
    """Trips, or else blocks where there are as many of them as cores."""
    if (made := trips_side_by_side(v, count)) is not None:
        return made
    able = (blocks_side_by_side(v, along, count) for along in range(len(v.grid))) if v.blocks >= count * cores else ()
    return next((made for made in able if made is not None), None)


def _times(form: Form) -> int:
    """How many a form has side by side by this move; 0 where another move made it."""
    if not form.moves:
        return 1
    name, _, count = form.moves[-1].partition(" ")
    return int(count) if name == MOVE.name and len(form.moves) == 1 else 0


def _bound(form: Form) -> float:
    """What the pipes of the best schedule need at the least; without end where it hardly takes longer, or where those that there
    are side by side gained nothing."""
    best = form.best
    if best is None or (form.before and form.microseconds >= form.before.microseconds):
        return float("inf")
    least = bound_of(best.planned, best)
    return least if form.microseconds > WAITING * least else float("inf")


def _made(form: Form, count: int, values: Values) -> Made:
    made = searched(form.kernel, form.source, form.setting, values, (f"{MOVE.name} {count}",))
    made.before = form
    return Made(form=made)
