"""Blocks together: where tiles are small, or loads hold the cube cores up, a block does the tiles of several neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from tile_eg.chips import Chip
from tile_eg.ir.values import Values
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.search.bounds import LOADS, floor, timing
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.open_sizes import SURE
from tile_eg.search.queue import Made, Offer
from tile_eg.sizing.estimate import Estimate, estimate
from tile_eg.transforms.blocks_together import chained, side_by_side, together
from tile_eg.transforms.split_k import loop_of_sums

NAME = "blocks-together"
TIMES = (2, 3, 5, 7)
"""So many times as many neighbours are taken: the first one that divides the number of blocks."""
OFFERED = 2
"""The last steps on the way to the tiles that are estimated best, so many of which are offered."""
GAIN = 0.9
"""The part of its quick estimate that a kernel may take at the most (assumed): its search takes as long as the kernel's own."""
WORTH = 0.1
"""And the part of its time that it gains at the least, by the quick estimate (assumed)."""
CHAINS = (2, 3, 4)
"""So many blocks stand side by side where each waits for itself (assumed: more take the search longer)."""
HELD_UP = 0.95
"""The part of a product's time that pipes which do not load may need at the most, where loads hold it up (assumed)."""


@record
class Together:
    """A kernel with a block for so many neighbours along each dimension of its grid, and its quick estimate. `apart`: their tiles
    stay tiles of their own, as what follows a product may have no room for larger ones."""

    counts: tuple[int, ...]
    values: Values
    estimate: Estimate
    apart: bool = False

    @property
    def what(self) -> str:
        along = ", ".join(f"{n} along {axis}" for n, axis in zip(self.counts, "xyz", strict=False) if n > 1)
        return f"{along}, side by side" if self.apart else along

    def grown(self, along: int, chip: Chip) -> Together | None:
        """With more neighbours along a dimension; None where these cannot be one block, or do not fit."""
        times = next((n for n in TIMES if self.values.grid[along] % n == 0), 1)
        values = together(self.values, along, times)
        found = estimate(values, chip) if values else None
        if values is None or found is None or found.excess(chip) > 1:
            return None
        return Together(tuple(n * times if d == along else n for d, n in enumerate(self.counts)), values, found)


def offers(form: Form) -> Iterator[Offer]:
    """The numbers of neighbours that are estimated best, the best of these first; each with the tiles as they are behind it.
    Where each tile has a core of its own, larger ones would leave cores idle."""
    v, chip = form.values, form.setting.chip
    if form.moves or not form.candidates or v.places or v.shared or v.sizes:
        return
    if v.blocks <= _cores(form):
        return
    yield from _waiting(form)
    closer = partial(_least, form) if loop_of_sums(v) else None
    for best in reversed(_climbed(form)[-OFFERED:]):
        if _is_worth_it(best, form):
            for way in (best, *_side_by_side(best, form)):
                bound = way.estimate.least_us(chip, SURE)
                yield Offer(MOVES[NAME], way.what, bound, partial(_made, form, way), form, closer=closer)


def _cores(form: Form) -> int:
    return form.setting.chip.cube_cores if form.estimate.cube else form.setting.chip.vector_cores


def _waiting(form: Form) -> Iterator[Offer]:
    """Where each trip's products wait for the trip before, pipes do little: a few blocks side by side do so at the same time, in
    fewer waves of blocks."""
    chip, best = form.setting.chip, form.best
    if best is None or timing(best).bound != "latency" or not chained(form.values):
        return
    found = [t for along in range(len(form.values.grid)) for n in CHAINS if (t := _beside(form, along, n, chip))]
    if found:
        least = min(found, key=lambda t: (-(-t.values.blocks // _cores(form)), prod(t.counts), t.estimate.cycles))
        bound = least.estimate.least_us(chip, SURE)
        yield Offer(MOVES[NAME], least.what, bound, partial(_made, form, least), form, closer=partial(_idle, form))


def _beside(form: Form, along: int, count: int, chip: Chip) -> Together | None:
    values = side_by_side(form.values, along, count)
    found = estimate(values, chip) if values else None
    if values is None or found is None or found.excess(chip) > 1:
        return None
    counts = tuple(count if d == along else 1 for d in range(len(form.values.grid)))
    return Together(counts, values, found, apart=True)


def _idle(form: Form) -> float:
    """What the busiest pipe takes, loads left out; without end where it is busy for most of the time."""
    best = form.best
    return floor(best, form.setting.chip) if best and timing(best).bound == "latency" else float("inf")


def _is_worth_it(found: Together, form: Form) -> bool:
    own, cycles = form.estimate.cycles, found.estimate.cycles
    return cycles <= GAIN * own and form.setting.chip.microseconds(own - cycles) >= WORTH * form.microseconds


def _side_by_side(wider: Together, form: Form) -> Iterator[Together]:
    """As many neighbours along one dimension, each with its own tiles, where there is work behind the sums."""
    grown = [(along, n) for along, n in enumerate(wider.counts) if n > 1]
    if len(grown) == 1 and form.estimate.bytes.get(Level.UB) and (values := side_by_side(form.values, *grown[0])):
        yield Together(wider.counts, values, wider.estimate, apart=True)


def _climbed(form: Form) -> list[Together]:
    """More and more neighbours, each time along the dimension that is estimated best, while that loses nothing."""
    chip, dimensions = form.setting.chip, range(len(form.values.grid))
    now, out = Together((1,) * len(dimensions), form.values, form.estimate), list[Together]()
    while True:
        larger = [t for along in dimensions if (t := now.grown(along, chip))]
        best = min(larger, key=lambda t: t.estimate.cycles, default=now)
        if best is now or best.estimate.cycles > now.estimate.cycles:
            return out
        now = best
        out.append(now)


def _least(form: Form) -> float:
    """What the busiest pipe takes, loads left out; without end where that is nearly all of it, or others hold it up."""
    best = form.best
    if best is None or timing(best).bound != f"AIC.{LOADS}":
        return float("inf")
    least = floor(best, form.setting.chip)
    return least if least <= HELD_UP * best.microseconds else float("inf")


def _made(form: Form, found: Together) -> Made:
    made = searched(form.kernel, form.source, form.setting, found.values, (f"{NAME} {found.what}",))
    return Made(form=made) if made.candidates else Made((), made.dropped, why="no schedule has room for its tiles")
