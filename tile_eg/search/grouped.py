"""Fewer barriers: what V does in an order of groups that do not need each other, as it waits between two groups alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.extract.schedule import Item, LoopStep, Schedule
from tile_eg.ir.program import AIV
from tile_eg.report.text import duration
from tile_eg.search.bounds import floor
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.search.steady import made_anew, rebuilt


def offers(form: Form) -> Iterator[Offer]:
    """Other orders of a form's schedules of vector cores alone."""
    for c in form.candidates:
        if _able(c.schedule):
            what = f"the schedule of {duration(c.microseconds * 1e-6)}"
            make = partial(_made, form, c.schedule)
            yield Offer(MOVES["fewer-barriers"], what, floor(c, form.setting.chip), make, form)


def _able(schedule: Schedule) -> bool:
    """Whether a schedule is of vector cores alone, and its choice stands for all of it."""
    whole = not (schedule.persistent or schedule.finished) and schedule.parts is None and schedule.second is None
    return whole and all(step.core == AIV for step, _ in schedule.walk())


def _made(form: Form, schedule: Schedule) -> Made:
    """The schedule in groups; nothing where its work stands in them already, or there is no room for more at a time."""
    built = [s for s in rebuilt(form, schedule, grouped=True) if _steps(s.top) != _steps(schedule.top)]
    if not built:
        return Made(why="no other order has fewer barriers")
    return made_anew(form, lambda: built)


def _steps(items: list[Item]) -> list[object]:
    """What a schedule does, in its order."""
    return [_steps(item.body) if isinstance(item, LoopStep) else item.node for item in items]
