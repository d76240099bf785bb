"""Deeper trips: loops of products whose trips sizes decide, with several trips as one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.sizing.estimate import estimate
from tile_eg.transforms.deeper_trips import in_deeper_trips
from tile_eg.transforms.k_tiling import FACTORS

SURE = 0.6
"""The least part of its estimate, in the measure of the form that it is made of, that a deeper form may take (assumed)."""


def offers(form: Form) -> Iterator[Offer]:
    """The forms of a kernel of any size whose loops of products have deeper trips, where their tiles fit."""
    if form.moves or form.values.sizes is None or not form.candidates:
        return
    chip = form.setting.chip
    made = ((factor, in_deeper_trips(form.values, factor)) for factor in FACTORS)
    found = ((estimate(values, chip), factor, values) for factor, values in made if values)
    for how, factor, values in sorted((f for f in found if f[0].excess(chip) <= 1), key=lambda f: f[0].cycles):
        closer = partial(_bound, form, how.cycles)
        yield Offer(MOVES["deeper-trips"], f"{factor} trips", 0.0, partial(_made, form, values, factor), form, closer=closer)


def _bound(form: Form, cycles: float) -> float:
    """What is made of a deeper form takes, by its quick estimate; copies gain as much of it as they did of the form by then."""
    return SURE * form.microseconds * cycles / form.estimate.cycles


def _made(form: Form, values: Values, factor: int) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, values, (f"deeper-trips {factor}",)))
