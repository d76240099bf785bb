"""Loops that take rows of their tiles apart, turned: what was every second element of a row is a row of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.transforms.turned_loops import in_turned_loops

NAME = "turned-loops"


def offers(form: Form) -> Iterator[Offer]:
    """The form of a kernel in turned tiles."""
    values = None if form.moves else in_turned_loops(form.values)
    if values is not None:
        yield Offer(MOVES[NAME], "the kernel", 0.0, partial(_made, form, values), form)


def applies(form: Form) -> bool:
    """Whether the move is allowed, and there is something for it to do."""
    return NAME in form.setting.options.moves and in_turned_loops(form.values) is not None


def _made(form: Form, values: Values) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, values, (NAME,)))
