"""Blocks together: where loads hold the cube cores up, a block does the tiles of several neighbours and loads once what they
share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from tile_eg.ir.values import Values
from tile_eg.search.bounds import LOADS, floor, timing
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.sizing.estimate import estimate
from tile_eg.transforms.blocks_together import together
from tile_eg.transforms.split_k import loop_of_sums

NAME = "blocks-together"
COUNTS = (2, 4)
GAIN = 0.9
"""The part of its time that a kernel may take at the most, by the quick estimate and by what its other pipes do: its search takes
as long as the kernel's own and longer."""


@dataclass(frozen=True)
class Together:
    """A kernel with a block for each `count` neighbours along a dimension of its grid, and the cycles of its quick estimate."""

    along: int
    count: int
    values: Values
    cycles: float

    @property
    def what(self) -> str:
        return f"{self.count} along {'xyz'[self.along]}"


def offers(form: Form) -> Iterator[Offer]:
    """For each dimension of the grid the number that is estimated best, the best of these first. Several sums side by side alone:
    of one, the author says how large its tiles are."""
    loop = None if form.moves or not form.candidates or form.values.places else loop_of_sums(form.values)
    if loop is None or len(loop.args[2]) < 2 or form.values.shared:
        return
    found = (min(_fitting(form, along), key=_cycles, default=None) for along in range(len(form.values.grid)))
    for best in sorted((t for t in found if t is not None), key=_cycles):
        make, least = partial(_made, form, best), partial(_least, form)
        yield Offer(MOVES[NAME], best.what, 0.0, make, form, closer=least)


def _cycles(found: Together) -> float:
    return found.cycles


def _fitting(form: Form, along: int) -> Iterator[Together]:
    chip, own = form.setting.chip, form.estimate.cycles
    for count in COUNTS:
        values = together(form.values, along, count)
        found = values and estimate(values, chip)
        if values and found and found.excess(chip) <= 1 and found.cycles <= GAIN * own:
            yield Together(along, count, values, found.cycles)


def _least(form: Form) -> float:
    """What the busiest pipe takes, loads left out; without end where that is nearly all of it, or others hold it up."""
    best = form.best
    if best is None or timing(best).bound != f"AIC.{LOADS}":
        return float("inf")
    least = floor(best, form.setting.chip)
    return least if least <= GAIN * best.microseconds else float("inf")


def _made(form: Form, found: Together) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, found.values, (f"{NAME} {found.what}",)))
