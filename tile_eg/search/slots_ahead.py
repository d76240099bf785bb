"""Slots ahead: in a skewed loop, more slots for what is read in later trips too, so that loads run ahead of all its readers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.extract.schedule import LoopStep, Schedule
from tile_eg.ops.physical import LOADS
from tile_eg.report.text import duration
from tile_eg.search.bounds import floor
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Offer
from tile_eg.search.steady import made_anew, rebuilt


def offers(form: Form) -> Iterator[Offer]:
    """Those of a form's schedules with such loads, the search model's cheapest first: as they are, they wait for loads."""
    able = [c for c in form.candidates if _able(c.schedule)]
    bound = min((floor(c, form.setting.chip) for c in able), default=0.0) / form.setting.chip.sync.fullest
    for c in sorted(able, key=lambda c: c.schedule.cost):
        what = f"the schedule of {duration(c.microseconds * 1e-6)}"
        make = partial(made_anew, form, partial(rebuilt, form, c.schedule, steady=True, ahead=True))
        yield Offer(MOVES["slots-ahead"], what, bound, make, form)


def _able(s: Schedule) -> bool:
    """Whether a skewed loop loads what later trips read, and the choice stands for all of the schedule."""
    loads = [step for step, around in s.walk() if step.node.op in LOADS and _late(s, step.dst) and any(map(_skewed, around))]
    return bool(loads) and not (s.persistent or s.finished) and s.one_phase


def _late(s: Schedule, sid: int | str) -> bool:
    held = s.storages.get(sid) if isinstance(sid, int) else None
    return held is not None and held.least > 1 and not (held.given or held.stays)


def _skewed(loop: LoopStep) -> bool:
    return loop.skew > 0
