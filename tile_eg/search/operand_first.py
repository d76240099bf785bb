"""An operand that is computed: its tiles, or rows, on all cores first, and the product that takes them in once these have met."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Offer
from tile_eg.search.rows_behind import SURE, Phases, Search, made_in_phases, of_phases
from tile_eg.sizing.phases import first_operand, operand_first

NAME = "operand-first"


def offers(form: Form, search: Search) -> Iterator[Offer]:
    """The kernel in two phases, where several of its blocks make the same operand. `search` gives the candidates of a phase."""
    chip, operand = form.setting.chip, first_operand(form.values) if not form.moves else None
    found = operand_first(operand, chip) if operand else None
    if found is None:
        return
    first, second, cycles = found
    bound = chip.launch_us(0, mixed=True) + SURE * chip.microseconds(cycles)
    stored = next(iter(first.outputs)).args[3]
    phases = Phases(NAME, (stored.rows, stored.cols), first, second, cycles)
    rows = cache(lambda: search(second, form, of_phases(form.setting)))
    make = partial(made_in_phases, form, phases, search, rows)
    yield Offer(MOVES[NAME], "tiles of {} x {}".format(*phases.size), bound, make, form, least=0 if form.candidates else 1)
