"""Shared windows: trips whose products take windows of one tile, each some rows further, as one trip that loads it once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values
from tile_eg.ops.types import Level
from tile_eg.search.bounds import LOADS, timing
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.transforms.shared_windows import in_shared_windows

NAME = "shared-windows"


def offers(form: Form) -> Iterator[Offer]:
    """The kernel with as many trips in one as L1 has room for."""
    if form.moves or form.values.sizes:
        return
    values = in_shared_windows(form.values, form.setting.chip.level_bytes(Level.L1))
    if values is not None:
        yield Offer(MOVES[NAME], "the kernel", 0.0, partial(_made, form, values), form, closer=partial(_least, form))


def _least(form: Form) -> float:
    """Without end where loads do not hold the best up. Vector cores may have brought the windows: what they need is no bound."""
    return float("inf") if form.best and not timing(form.best).bound.endswith(LOADS) else 0.0


def _made(form: Form, values: Values) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, values, (NAME,)))
