"""Shuffle-K: the best schedule of a form with sums that each core begins at another trip, so that cores read other lines."""

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


def offers(form: Form) -> Iterator[Offer]:
    """One for each form: what is its best schedule once all else was tried."""
    if form.candidates and form.values.sizes is None:
        yield Offer(MOVES["shuffle-k"], "the best schedule", 0.0, partial(_made, form), form, closer=partial(_least, form))


def _least(form: Form) -> float:
    return floor(form.best, form.setting.chip) if form.best else float("inf")


def _made(form: Form) -> Made:
    """The plan is shared: flags and buffers are those of the trips as they come."""
    best = form.best
    made = with_shuffled_sums(best.schedule, best.planned) if best else None
    if made is None:
        return Made(why="no loop of products loads what it adds in whole tiles from trip to trip")
    return Made(ranked([made], form.setting.model))


def with_shuffled_sums(schedule: Schedule, planned: Planned) -> tuple[Schedule, Planned] | None:
    """A planned schedule whose cores begin their sums at other trips; None where it has no such sums."""
    from tile_eg.emit.shuffle_k import shuffled

    program = shuffled(planned.program)
    return (replace(schedule, shuffled=True), Planned(program, planned.chip)) if program else None
