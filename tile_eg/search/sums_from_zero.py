"""Sums of products from zero on, where they begin with something else: that is then added behind them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.search.smaller_tiles import AS_ITS_KERNEL
from tile_eg.sizing.estimate import estimate
from tile_eg.transforms.sums_from_zero import from_zero

NAME = "sums-from-zero"


def offers(form: Form) -> Iterator[Offer]:
    """The form of a kernel with its sums from zero on."""
    values = None if form.moves or form.values.sizes else from_zero(form.values)
    if values is not None:
        least = 0 if form.candidates else 1
        yield Offer(MOVES[NAME], "the kernel", _bound(form, values), partial(_made, form, values), form, least=least)


def _bound(form: Form, values: Values) -> float:
    """By what the kernel takes of its own, where that is known: a quick estimate is wrong of both in the same way."""
    own = estimate(values, form.setting.chip)
    return AS_ITS_KERNEL * form.microseconds * own.cycles / form.estimate.cycles if form.candidates else 0.0


def _made(form: Form, values: Values) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, values, (NAME,)))
