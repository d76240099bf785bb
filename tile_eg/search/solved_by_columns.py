"""Triangular systems solved by columns, where they are solved row by row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.transforms.solved_by_columns import solved_by_columns

NAME = "solved-by-columns"


def offers(form: Form) -> Iterator[Offer]:
    """The form of a kernel with its systems solved by columns."""
    values = None if form.moves else solved_by_columns(form.values)
    if values is not None:
        yield Offer(MOVES[NAME], "the kernel", 0.0, partial(_made, form, values), form)


def _made(form: Form, values: Values) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, values, (NAME,)))
