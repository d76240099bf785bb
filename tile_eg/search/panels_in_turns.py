"""Panels in turns: a tile whose load, work and store wait for each other goes through UB in row panels, of which one is loaded or
stored while another is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values, reachable
from tile_eg.search.bounds import bound_of
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.transforms.row_panels import in_panels

MOVE = MOVES["panels-in-turns"]
HINDERED = 1.2
"""Times what the pipes of a schedule need at the least, beyond which they are said to wait for each other: of 15 kernels on two
chips none gained below it, and those that did took 1.23 times and more."""
MOST = 4
"""Panels of a tile: twice as many gained nothing where they were tried."""


def offers(form: Form) -> Iterator[Offer]:
    """Of a kernel as it is written two panels, of one in panels twice as many; only where each vector core has several tiles."""
    count = 2 * _panels(form)
    if not 1 < count <= MOST or not form.candidates or form.values.blocks <= form.setting.chip.vector_cores:
        return
    if any(t.op == "matmul" for t in reachable(form.values)) or any(p.slots for p in form.values.places.values()):
        return
    if (values := in_panels(form.source, count)) is not None:
        yield Offer(MOVE, str(count), 0.0, partial(_made, form, count, values), form, closer=partial(_bound, form))


def _panels(form: Form) -> int:
    """In how many panels a form is by this move; 0 where another move made it."""
    if not form.moves:
        return 1
    name, _, count = form.moves[-1].partition(" ")
    return int(count) if name == MOVE.name and len(form.moves) == 1 else 0


def _bound(form: Form) -> float:
    """What the pipes of the best schedule need at the least; without end where it hardly takes longer, or where the panels that
    there are gained nothing."""
    best = form.best
    if best is None or (form.before and form.microseconds >= form.before.microseconds):
        return float("inf")
    least = bound_of(best.planned, best)
    return least if form.microseconds > HINDERED * least else float("inf")


def _made(form: Form, count: int, values: Values) -> Made:
    made = searched(form.kernel, form.source, form.setting, values, (f"{MOVE.name} {count}",))
    made.before = form
    return Made(form=made)
