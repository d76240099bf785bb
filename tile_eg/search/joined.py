"""Tiles as one: the skewed loop of a persistent kernel goes on from tile to tile, so that no tile waits for its first results."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.extract.joined import joined, loop_of
from tile_eg.extract.schedule import LoopStep
from tile_eg.search.bounds import floor
from tile_eg.search.candidates import Candidate, Dropped, plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer

TRIED = 1
"""How many of a form's schedules are planned with their tiles as one, the fastest first (assumed)."""


def offers(form: Form) -> Iterator[Offer]:
    """One for each form with a skewed loop. It is made near the end of the search, of the schedules that are the best by then."""
    if any(isinstance(x, LoopStep) and x.skew for c in form.candidates for x in c.schedule.top):
        yield Offer(MOVES["tiles-as-one"], "the best schedules", 0.0, partial(_made, form), form, closer=partial(_bound, form))


def _able(form: Form) -> list[Candidate]:
    return [c for c in form.launchable if loop_of(c.schedule)][:TRIED]


def _bound(form: Form) -> float:
    return min((floor(c, form.setting.chip) for c in _able(form)), default=float("inf"))


def _made(form: Form) -> Made:
    """Those of the best schedules whose bound is better than what was found before them."""
    chip, best = form.setting.chip, form.microseconds
    found: tuple[Candidate, ...] = ()
    dropped: Dropped = ()
    for candidate in _able(form):
        schedule = joined(candidate.schedule, chip) if floor(candidate, chip) < best else None
        if schedule is not None:
            planned, refused = plan_each([schedule], chip)
            found, dropped = (*found, *ranked(planned, form.setting.model)), (*dropped, *refused)
            best = min([best, *(c.microseconds for c in found)])
    return Made(found, dropped, why="" if found else "memory has no room for what two tiles need at a time")
