"""Places apart: the best schedule's buffers give up slots for which other tiles wait, as they share places to make room."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.extract.apart import apart, shares_places
from tile_eg.extract.schedule import Schedule
from tile_eg.ops.types import Level
from tile_eg.search.bounds import floor
from tile_eg.search.candidates import plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer


def offers(form: Form) -> Iterator[Offer]:
    """One for each form whose vector cores have buffers. It is made of the schedule that is the best by then."""
    if any(s.level is Level.UB and s.spare > 0 for c in form.candidates for s in c.schedule.storages.values()):
        yield Offer(MOVES["places-apart"], "the best schedule", 0.0, partial(_made, form), form, closer=partial(_bound, form))


def _able(schedule: Schedule) -> bool:
    """Whether something waits for a place, and the places are those of the schedule's choice."""
    chosen = schedule.one_phase and not (schedule.shuffled or schedule.prefetched or schedule.past_l2)
    return chosen and shares_places(schedule)


def _bound(form: Form) -> float:
    best = form.best
    return floor(best, form.setting.chip) if best and _able(best.schedule) else float("inf")


def _made(form: Form) -> Made:
    assert form.best is not None
    schedule = apart(form.best.schedule, form.setting.chip)
    if schedule is None:
        return Made(why="with fewer buffers as many places are shared")
    planned, dropped = plan_each([schedule], form.setting.chip)
    return Made(ranked(planned, form.setting.model), dropped)
