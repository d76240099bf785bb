"""Persistent grids: a block for each core that goes through several tiles, in which order, and with its results in halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from tile_eg.report.decisions import grid_option
from tile_eg.report.text import duration
from tile_eg.search.bounds import floor, unhindered
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

    Of a schedule that is finished nothing is made: its plan alone is.
    """
    schedule = candidate.schedule
    if not schedule.one_phase or schedule.finished:
        return
    if not schedule.persistent:
        if any(g.op == "Persistent" for g in form.grids):
            bound, weight = _lowest(form, candidate), 2 if schedule.loops else 1
            made = cache(partial(persistent_of, form, candidate))
            closer = partial(_least, form, candidate, made)
            make, group = partial(_first, form, candidate, made), ("persistent", *_like(form, candidate))
            yield Offer(MOVES["persistent-grid"], _timed(candidate), bound, make, form, group, weight=weight, closer=closer)
        return
    bound = floor(candidate, form.setting.chip)
    yield Offer(MOVES["split-result"], _timed(candidate), bound, partial(_in_halves, form, candidate), form)
    fresh = candidate.planned.program.blocks not in form.offered
    form.offered.add(candidate.planned.program.blocks)
    for grid in _orders(form, candidate)[1:] if fresh else ():
        yield Offer(MOVES["tile-order"], grid_option(grid), bound, partial(_reordered, form, grid), form)


def _lowest(form: Form, candidate: Candidate) -> float:
    """The bound of all of a form's schedules on as many cores, so that the fastest of them comes first."""
    alike = (c for c in form.candidates if not c.schedule.persistent and _like(form, c) == _like(form, candidate))
    return min((floor(c, form.setting.chip) for c in alike), default=floor(candidate, form.setting.chip))


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


def persistent_of(form: Form, candidate: Candidate) -> list[Schedule]:
    """The candidate's schedule with a block for each core, its tiles in the order whose loads are the quickest."""
    from tile_eg.extract.grid import with_grids

    return [s for g in _orders(form, candidate)[:1] for s in with_grids(candidate.schedule, g, form.setting.chip)]


def _least(form: Form, candidate: Candidate, made: Callable[[], list[Schedule]]) -> float:
    """What the persistent kernels take at the least where that is more than another one of the form takes; 0 where it is not.

    Of other forms' times it says nothing: other orders of tiles and packed operands, made of a form's best, have other loads.
    """
    if not form.slower_than(expected := expected_of(form, candidate)):
        return expected
    if not form.slower_than(own := floor(candidate, form.setting.chip)):
        return own
    best = best_persistent(form, _cores(form, candidate))
    least = min((unhindered(s, form.setting.chip, candidate) for s in made()), default=0.0) if best else 0.0
    return least if best and least >= best.microseconds else 0.0


def expected_of(form: Form, candidate: Candidate) -> float:
    """As `form.expected` of the candidate's persistent kernels."""
    return form.expected(_like(form, candidate), candidate)


def _like(form: Form, candidate: Candidate) -> tuple[int, bool]:
    """Schedules that gain alike: on as many cores, with rows that stay in UB or without."""
    return _cores(form, candidate), any(n.op == "Stays" for n in candidate.schedule.nodes)


def _first(form: Form, candidate: Candidate, made: Callable[[], list[Schedule]]) -> Made:
    """The candidate's persistent kernels; the form keeps the most that any of them gained."""
    out = _planned(form, made)
    form.note_gain(_like(form, candidate), candidate, out.candidates)
    return out


def _planned(form: Form, made: Callable[[], list[Schedule]]) -> Made:
    planned, dropped = plan_each(made(), form.setting.chip)
    return Made(ranked(planned, form.setting.model), dropped)


def _in_halves(form: Form, candidate: Candidate) -> Made:
    """With results that leave L0C in halves, where L0C holds one of them."""
    from tile_eg.extract.grid import in_halves

    halved = in_halves(candidate.schedule)
    if halved is None:
        return Made(why="there is no one product whose result could leave L0C in halves, or it does already")
    return _planned(form, lambda: [halved])


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
    plain = (c for c in form.candidates if not c.schedule.joined)
    found = (c for c in plain if c.schedule.persistent and c.schedule.one_phase)
    of_blocks = (c for c in found if blocks in (None, c.planned.program.blocks))
    return next((c for c in of_blocks if not c.unwritable), None)
