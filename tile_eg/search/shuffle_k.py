"""Shuffle-K: the best schedules of a form with sums that each core begins at another trip, so that cores read other lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tile_eg.search.bounds import floor
from tile_eg.search.candidates import ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.planned import Planned
from tile_eg.search.queue import Made, Offer

if TYPE_CHECKING:
    from tile_eg.extract.schedule import Schedule

NEAR = 1.1
"""Schedules that take so many times the best one's time gain no more by reading other lines than it does (assumed)."""


def offers(form: Form) -> Iterator[Offer]:
    """One for each form: of what are its best schedules once all else was tried."""
    if form.candidates and form.values.sizes is None:
        yield Offer(MOVES["shuffle-k"], "the best schedules", 0.0, partial(_made, form), form, closer=partial(_least, form))


def _least(form: Form) -> float:
    return floor(form.best, form.setting.chip) if form.best else float("inf")


def _made(form: Form) -> Made:
    """The plans are shared: flags and buffers are those of the trips as they come."""
    best = form.best.microseconds if form.best else 0.0
    near = (c for c in form.launchable if c.microseconds <= NEAR * best)
    found = [made for c in near if (made := with_shuffled_sums(c.schedule, c.planned))]
    if not found:
        return Made(why="no loop of products loads what it adds in whole tiles from trip to trip")
    return Made(ranked(found, form.setting.model))


def with_shuffled_sums(schedule: Schedule, planned: Planned) -> tuple[Schedule, Planned] | None:
    """A planned schedule whose cores begin their sums at other trips; None where it has no such sums."""
    from tile_eg.emit.shuffle_k import shuffled

    program = shuffled(planned.program)
    return (replace(schedule, shuffled=True), Planned(program, planned.chip)) if program else None
