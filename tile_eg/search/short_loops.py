"""Short loops of vector work as the steps of their trips, which need not make a state in the place of the one before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values
from tile_eg.search import turned_loops
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.transforms.short_loops import with_short_loops_in_steps

NAME = "loop-in-steps"


def offers(form: Form) -> Iterator[Offer]:
    """The kernel itself in steps, or with its tiles turned where they can be."""
    last = form.moves == (turned_loops.NAME,) or (not form.moves and not turned_loops.applies(form))
    values = with_short_loops_in_steps(form.values) if last else None
    if values is not None:
        yield Offer(MOVES[NAME], "the kernel", 0.0, partial(_made, form, values), form)


def _made(form: Form, values: Values) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, values, (*form.moves, NAME)))
