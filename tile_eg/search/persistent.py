"""Persistent grids: a block for each core that goes through several tiles, in which order, and with its results in halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from tile_eg.report.decisions import grid_option
from tile_eg.report.text import duration
from tile_eg.search.bounds import bound_of, floor, unhindered
from tile_eg.search.candidates import Candidate, plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.planned import Planned
from tile_eg.search.queue import Made, Offer

if TYPE_CHECKING:
    from tile_eg.egraph import Node
    from tile_eg.extract.schedule import Schedule

ORDERS = 3
"""Orders of tiles that are looked at for one number of cores: what brings the loads in the quickest."""


def offers(form: Form, candidate: Candidate) -> Iterator[Offer]:
    """What can be made of a schedule of one phase: a persistent kernel; of that one another order, or its results in halves.

    Of a schedule whose sums are shuffled nothing is made: its plan alone has them so.
    """
    schedule = candidate.schedule
    if schedule.parts is not None or schedule.shuffled:
        return
    if not schedule.persistent:
        if any(g.op == "Persistent" for g in form.grids):
            yield _persistent_offer(form, candidate)
        return
    yield _split_offer(form, candidate)
    fresh = candidate.planned.program.blocks not in form.offered
    form.offered.add(candidate.planned.program.blocks)
    for grid in _orders(form, candidate)[1:] if fresh else ():
        yield _order_offer(form, candidate, grid)


def _persistent_offer(form: Form, candidate: Candidate) -> Offer:
    cores, weight = _cores(form, candidate), 2 if candidate.schedule.loops else 1
    group = "persistent", cores, any(n.op == "Stays" for n in candidate.schedule.nodes)
    made = cache(partial(_persistent, form, candidate))
    least = cache(partial(_unhindered, form, candidate, made))
    return Offer(
        MOVES["persistent-grid"], _timed(candidate), floor(candidate, form.setting.chip), partial(_planned, form, made),
        form, group, weight=weight, closer=partial(_least, form, cores, least),
        near=least, rival=partial(_taken, form, cores),
    )  # fmt: skip


def _split_offer(form: Form, candidate: Candidate) -> Offer:
    from tile_eg.extract.grid import in_halves

    halved, chip = cache(partial(in_halves, candidate.schedule)), form.setting.chip
    return Offer(
        MOVES["split-result"], _timed(candidate), floor(candidate, chip), partial(_in_halves, form, halved), form,
        near=lambda: unhindered(made, chip, candidate) if (made := halved()) else float("inf"),
        rival=partial(_taken, form, candidate.planned.program.blocks),
    )  # fmt: skip


def _order_offer(form: Form, candidate: Candidate, grid: Node) -> Offer:
    bound, taken = floor(candidate, form.setting.chip), partial(_taken, form, grid.payload[0])
    near = partial(_in_order, form, grid)
    return Offer(MOVES["tile-order"], grid_option(grid), bound, partial(_reordered, form, grid), form, near=near, rival=taken)


def _timed(candidate: Candidate) -> str:
    return f"the schedule of {duration(candidate.microseconds * 1e-6)}"


def _orders(form: Form, candidate: Candidate) -> list[Node]:
    """The orders that are worth a plan on as many cores as the candidate's blocks may take, the quickest loads first."""
    from tile_eg.extract.grid import orders

    cores = _cores(form, candidate)
    if cores not in form.orders:
        most = ORDERS if form.setting.options.effort != "full" else None
        form.orders[cores] = orders(candidate.schedule, form.setting.chip, cores, most)
    return form.orders[cores]


def _cores(form: Form, candidate: Candidate) -> int:
    """How many of the candidate's blocks run side by side."""
    from tile_eg.timeline.works import blocks_at_once

    return blocks_at_once(candidate.planned.program, form.setting.chip)


def _persistent(form: Form, candidate: Candidate) -> list[Schedule]:
    """The candidate's schedule with a block for each core, its tiles in the order whose loads are the quickest."""
    from tile_eg.extract.grid import with_grids

    return [s for g in _orders(form, candidate)[:1] for s in with_grids(candidate.schedule, g, form.setting.chip)]


def _unhindered(form: Form, candidate: Candidate, made: Callable[[], list[Schedule]]) -> float:
    """What the persistent kernels take at the least, or would with their results in halves."""
    from tile_eg.extract.grid import in_halves

    halved = (s for one in made() if (s := in_halves(one)))
    return min((unhindered(s, form.setting.chip, candidate) for s in (*made(), *halved)), default=0.0)


def _least(form: Form, cores: int, least: Callable[[], float]) -> float:
    """What the persistent kernels take at the least where that is more than another one of the form takes; 0 where it is not.

    Of other forms' times it says nothing: other orders of tiles and packed operands, made of a form's best, have other loads.
    """
    return least() if least() >= _taken(form, cores) else 0.0


def _taken(form: Form, blocks: int) -> float:
    """The microseconds of the best persistent candidate of so many blocks."""
    best = best_persistent(form, blocks)
    return best.microseconds if best else float("inf")


def _planned(form: Form, made: Callable[[], list[Schedule]]) -> Made:
    planned, dropped = plan_each(made(), form.setting.chip)
    return Made(ranked(planned, form.setting.model), dropped)


def _in_halves(form: Form, halved: Callable[[], Schedule | None]) -> Made:
    """With results that leave L0C in halves, where L0C holds one of them."""
    made = halved()
    if made is None:
        return Made(why="there is no one product whose result could leave L0C in halves, or it does already")
    return _planned(form, lambda: [made])


def _in_order(form: Form, grid: Node) -> float:
    """What the best persistent candidate takes at the least with its tiles in another order."""
    from tile_eg.emit.lower.tasks import reordered

    best = best_persistent(form, grid.payload[0])
    if best is None:
        return 0.0
    return bound_of(reordered(best.planned.program, replace(best.schedule, grid=grid)), form.setting.chip, best)


def _reordered(form: Form, grid: Node) -> Made:
    """The best persistent candidate on as many cores, with its tiles in another order: the plan is shared."""
    from tile_eg.emit.lower.tasks import reordered

    best = best_persistent(form, grid.payload[0])
    if best is None or best.schedule.grid is grid:
        return Made(why="the best one has its tiles in this order")
    schedule = replace(best.schedule, grid=grid)
    return Made(ranked([(schedule, Planned(reordered(best.planned.program, schedule), form.setting.chip))], form.setting.model))


def best_persistent(form: Form, blocks: int | None = None) -> Candidate | None:
    """The best persistent candidate of one phase; of so many blocks."""
    found = (c for c in form.candidates if c.schedule.persistent and c.schedule.parts is None)
    of_blocks = (c for c in found if blocks in (None, c.planned.program.blocks))
    return next((c for c in of_blocks if not c.unwritable), None)
