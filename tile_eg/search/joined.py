"""Tiles as one: the skewed loop of a persistent kernel goes on from tile to tile, so that no tile waits for its first results."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from tile_eg.extract.joined import joined, loop_of
from tile_eg.extract.schedule import LoopStep
from tile_eg.search.bounds import floor
from tile_eg.search.candidates import Candidate, plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer

LEAST = 0.85
"""The part of its time that a kernel takes with its tiles as one, at the least (assumed: it was 0.946 to 1.001 in seven forms of
flash attention)."""


def offers(form: Form) -> Iterator[Offer]:
    """One for each form with a skewed loop. It is made near the end of the search, of the schedule that is the best by then."""
    if any(isinstance(x, LoopStep) and x.skew for c in form.candidates for x in c.schedule.top):
        yield Offer(MOVES["tiles-as-one"], "the best schedule", 0.0, partial(_made, form), form, closer=partial(_bound, form))


def _able(form: Form) -> Candidate | None:
    """The fastest candidate that has such a loop."""
    return next((c for c in form.launchable if loop_of(c.schedule)), None)


def _tried(form: Form) -> list[Candidate]:
    """That one; and the fastest of those whose rings are made otherwise: where loads run ahead, or slots are kept with fewer ids,
    rings take the room or the flags of a second tile."""
    kinds = dict[tuple[bool, bool], Candidate]()
    for c in form.launchable:
        if loop_of(c.schedule):
            kinds.setdefault((c.schedule.ahead, c.schedule.few_ids), c)
    return list(kinds.values())


def _bound(form: Form) -> float:
    """What its pipes take; unless the effort is full also what it will hardly beat."""
    candidate, full = _able(form), form.setting.options.effort == "full"
    if candidate is None:
        return float("inf")
    return max(floor(candidate, form.setting.chip), 0.0 if full else LEAST * candidate.microseconds)


def _made(form: Form) -> Made:
    chip, each = form.setting.chip, product(_tried(form), (False, True))
    schedules = [s for candidate, fitting in each if (s := joined(candidate.schedule, chip, fitting))]
    if not schedules:
        return Made(why="its loop cannot go on from tile to tile, or memory has no room for two tiles at a time")
    planned, dropped = plan_each(schedules, chip)
    return Made(ranked(planned, form.setting.model), dropped)
