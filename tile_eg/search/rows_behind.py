"""Rows behind a product: its tiles on all cores first, and what needs whole rows once all cores have met."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from tile_eg.chips import Chip
from tile_eg.errors import PlanError, plannable
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.search.candidates import Candidate, ranked, written
from tile_eg.search.form import Form, Setting
from tile_eg.search.moves import FINISHING, MOVES
from tile_eg.search.planned import Planned
from tile_eg.search.planning import with_rows_behind
from tile_eg.search.queue import Made, Offer
from tile_eg.search.sums_from_zero import NAME as FROM_ZERO
from tile_eg.sizing.estimate import Estimate, estimate
from tile_eg.timeline.meetings import meeting
from tile_eg.transforms.rows_behind import Product, behind, in_tiles, product_of
from tile_eg.transforms.split_k import PANELS

if TYPE_CHECKING:
    from tile_eg.extract.schedule import Schedule
    from tile_eg.ir.values import Values

NAME = "rows-behind"
SIZES = (16, 32, 64, 128, 192, 256, 512)
"""Rows and columns of the tiles that are looked at."""
OFFERED = 3
"""Tiles that are offered, those first whose quick estimate is best."""
SURE = 0.7
"""The least part of its quick estimate that a launch of both phases may take; 0.81 is the least that was seen (residual
norm of 4096 latents of DeepSeek V3, 910B2)."""
MOST = 4
"""So many schedules of the product are joined with the rest."""
NEAR = 1.1
"""Schedules of the product that take so many times the best one's time are joined with the rest too: what is done to the best of
all may change their order (assumed)."""
ALONE = frozenset({m.name for m in MOVES.values() if m.when == FINISHING} - {"prefetch-tile"})
"""What is done to a whole launch, and not to one phase of it."""

Search = Callable[["Values", Form, Setting], tuple[Candidate, ...]]


@record
class Phases:
    """Both phases of a kernel, as a move makes them, with tiles of so many rows and columns in the first one; `cycles` by the
    quick estimate."""

    move: str
    size: tuple[int, int]
    first: Values
    second: Values
    cycles: float


def offers(form: Form, search: Search) -> Iterator[Offer]:
    """The sizes of tiles that are estimated to take least. `search` gives the candidates of a phase, ranked."""
    product = product_of(form.values) if form.moves in ((), (FROM_ZERO,)) else None
    chip = form.setting.chip
    found = ways(product, chip)[:OFFERED] if product else []
    rows = cache(lambda: search(found[0].second, form, of_phases(form.setting)))
    for phases in found:
        bound = chip.launch_us(0, mixed=True) + SURE * chip.microseconds(phases.cycles)
        what, make = "tiles of {} x {}".format(*phases.size), partial(made_in_phases, form, phases, search, rows)
        yield Offer(MOVES[NAME], what, bound, make, form, least=0 if form.candidates else 1)


def of_phases(setting: Setting) -> Setting:
    """How the phases of a launch are searched."""
    options = setting.options
    return replace(setting, options=replace(options, without=options.without | ALONE), meets=True)


def ways(product: Product, chip: Chip) -> list[Phases]:
    """Both phases with tiles of each size that fits, those first that are estimated to take least."""
    rows = _best_of({n: v for n in PANELS if (v := behind(product, n))}, chip)
    if rows is None:
        return []
    (_, second), after = rows
    sizes = [(m, n) for m in _upto(product.rows) for n in _upto(product.cols) if _fits(product, m, n, chip)]
    out = []
    for size in sizes:
        first = in_tiles(product, *size)
        if first and (sums := estimate(first, chip)).excess(chip) <= 1:
            cycles = sums.cycles + after.cycles - min(sums.launch, after.launch) + meeting(chip)
            out.append(Phases(NAME, size, first, second, cycles))
    return sorted(out, key=lambda p: p.cycles)


def _upto(extent: int) -> list[int]:
    """The sizes up to the first one that has room for all."""
    return [n for k, n in enumerate(SIZES) if k == 0 or SIZES[k - 1] < extent]


def _fits(product: Product, rows: int, cols: int, chip: Chip) -> bool:
    """Whether L0C has room for a tile of each of the sums."""
    sums = (init.dtype for init, _ in product.loop.args[2])
    return sum(rows * cols * t.bytes for t in sums if t) <= chip.level_bytes(Level.L0C)


def _best_of(forms: dict[int, Values], chip: Chip) -> tuple[tuple[int, Values], Estimate] | None:
    """The form whose quick estimate is best of those that fit and leave room to load beside the work, or of those that fit."""
    known = [((n, v), estimate(v, chip)) for n, v in forms.items()]
    fitting = [(of, e) for of, e in known if e.excess(chip) <= 1]
    return min(fitting, key=lambda found: (not found[1].overlaps, found[1].cycles), default=None)


def made_in_phases(form: Form, phases: Phases, search: Search, rows: Callable[[], tuple[Candidate, ...]]) -> Made:
    """The best schedules of the product, each as one launch with the best one of the `rows` behind it; and what failed."""
    found, after = search(phases.first, form, of_phases(form.setting)), rows()
    if not found or not after:
        return Made(why="no schedule makes the product in these tiles, or does what follows it")
    joined: list[tuple[Schedule, Planned]] = []
    dropped: list[tuple[Schedule, Exception]] = []
    for candidate in found:
        if len(joined) < MOST and candidate.microseconds <= NEAR * found[0].microseconds:
            schedule, planned = _joined(candidate, after, form, phases.move)
            if isinstance(planned, Planned):
                joined.append((schedule, planned))
            else:
                dropped.append((schedule, planned))
    return Made(ranked(joined, form.setting.model), tuple(dropped))


def _joined(first: Candidate, after: tuple[Candidate, ...], form: Form, move: str) -> tuple[Schedule, Planned | PlanError]:
    """A schedule of the product with the best one of what follows that can be one launch with it; or why none can."""
    first.schedule.graph.grids = form.grids  # what could be decided of the kernel, not of the phase
    for second in written(after):
        schedule = replace(first.schedule, behind=second.schedule, parted=move)
        planned = plannable(partial(with_rows_behind, first.planned.program, second.planned.program, form.setting.chip))
        if isinstance(planned, Planned):
            break
    return schedule, planned
