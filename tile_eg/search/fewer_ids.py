"""Fewer ids: rings that gave up slots for lack of flag ids, with all their slots, and fewer ids than these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tile_eg.extract.schedule import Schedule
from tile_eg.report.text import duration
from tile_eg.search.bounds import floor, unhindered
from tile_eg.search.candidates import Candidate, plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer


def offers(form: Form, candidate: Candidate | None) -> Iterator[Offer]:
    """One for a schedule whose rings gave up slots, as only the timeline tells which of the two ways is faster; and one for each
    of a form's schedules for which no flags were found even so."""
    if candidate:
        what = f"the schedule of {duration(candidate.microseconds * 1e-6)}"
        least = floor(candidate, form.setting.chip) / form.setting.chip.sync.fullest
        yield from _offer(form, candidate.schedule, candidate, what, least)
    elif form.best:
        for n, (schedule, _) in enumerate(form.dropped, 1):
            yield from _offer(form, schedule, form.best, f"schedule {n} without flags", 0.0)


def _offer(form: Form, schedule: Schedule, like: Candidate, what: str, bound: float) -> Iterator[Offer]:
    if schedule.fuller and schedule.one_phase and not (schedule.shuffled or schedule.past_l2):
        fuller = replace(schedule.fuller, few_ids=True)
        closer = partial(unhindered, fuller, form.setting.chip, like)
        yield Offer(MOVES["fewer-ids"], what, bound, partial(_made, form, fuller), form, closer=closer)


def _made(form: Form, fuller: Schedule) -> Made:
    planned, dropped = plan_each([fuller], form.setting.chip)
    return Made(ranked(planned, form.setting.model), dropped)
