"""Blocks together: where loads hold the cube cores up, a block does the tiles of several neighbours and loads once what they
share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from operator import attrgetter

from tile_eg.ir.values import Term, Values
from tile_eg.ops.types import Level
from tile_eg.search.bounds import LOADS, floor, timing
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.sizing.estimate import estimate
from tile_eg.transforms.blocks_together import together
from tile_eg.transforms.split_k import loop_of_sums

NAME = "blocks-together"
COUNTS = (1, 2, 4)
"""How many neighbours along each dimension of the grid may be one block."""
OFFERED = 2
"""Of these ways, so many are offered: those first whose quick estimate is best."""
GAIN = 0.95
"""The part of its time that a kernel may take at the most, by the quick estimate and by what its other pipes do: its search takes
as long as the kernel's own and longer."""


@dataclass(frozen=True)
class Together:
    """A kernel with a block for so many neighbours along each dimension of its grid, and the cycles of its quick estimate."""

    counts: tuple[int, ...]
    values: Values
    cycles: float

    @property
    def what(self) -> str:
        return ", ".join(f"{n} along {axis}" for n, axis in zip(self.counts, "xyz", strict=False) if n > 1)


def offers(form: Form) -> Iterator[Offer]:
    """The numbers of neighbours that are estimated best, the best of these first."""
    loop = None if form.moves or not form.candidates or form.values.places else loop_of_sums(form.values)
    if loop is None or form.values.shared:
        return
    for best in sorted(_fitting(form, loop), key=attrgetter("cycles"))[:OFFERED]:
        make, least = partial(_made, form, best), partial(_least, form)
        yield Offer(MOVES[NAME], best.what, 0.0, make, form, closer=least)


def _fitting(form: Form, loop: Term) -> Iterator[Together]:
    chip, own = form.setting.chip, form.estimate.cycles
    sums = sum(init.rows * init.cols * init.dtype.bytes for init, _ in loop.args[2])
    for counts in product(COUNTS, repeat=len(form.values.grid)):
        if 1 < prod(counts) <= chip.level_bytes(Level.L0C) // sums and (values := _all_together(form.values, counts)):
            found = estimate(values, chip)
            if found.excess(chip) <= 1 and found.cycles <= GAIN * own:
                yield Together(counts, values, found.cycles)


def _all_together(values: Values, counts: tuple[int, ...]) -> Values | None:
    """The kernel with a block for so many neighbours along each dimension; None where one is no whole number of them."""
    out: Values | None = values
    for along, count in enumerate(counts):
        out = together(out, along, count) if out and count > 1 else out
    return out


def _least(form: Form) -> float:
    """What the busiest pipe takes, loads left out; without end where that is nearly all of it, or others hold it up."""
    best = form.best
    if best is None or timing(best).bound != f"AIC.{LOADS}":
        return float("inf")
    least = floor(best, form.setting.chip)
    return least if least <= GAIN * best.microseconds else float("inf")


def _made(form: Form, found: Together) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, found.values, (f"{NAME} {found.what}",)))
