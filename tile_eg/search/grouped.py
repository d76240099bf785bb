"""Fewer barriers: what V does in an order of groups that do not need each other, as it waits between two groups alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from tile_eg.extract.schedule import Item, LoopStep, Schedule, Step, StorageId
from tile_eg.ir.program import AIV
from tile_eg.report.text import duration
from tile_eg.search.bounds import floor
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.search.steady import made_anew, rebuilt

V = "AIV.V"


def offers(form: Form) -> Iterator[Offer]:
    """Other orders of a form's schedules of vector cores alone, of the fastest first. All have the bound of the best."""
    able = [c for c in form.candidates if _able(c.schedule)]
    bound = min((floor(c, form.setting.chip) for c in able), default=0.0)
    for c in able:
        what = f"the schedule of {duration(c.microseconds * 1e-6)}"
        yield Offer(MOVES["fewer-barriers"], what, bound, partial(_made, form, c.schedule), form)


def _able(schedule: Schedule) -> bool:
    """Whether a schedule is of vector cores alone, its choice stands for all of it, and another order may have fewer barriers."""
    whole = not (schedule.persistent or schedule.finished) and schedule.one_phase
    return whole and all(step.core == AIV for step, _ in schedule.walk()) and least(schedule.top) < barriers(schedule.top)


def _made(form: Form, schedule: Schedule) -> Made:
    """The schedule in groups; nothing where that leaves as many, or there is no room for more at a time."""
    built = [s for s in rebuilt(form, schedule, grouped=True) if barriers(s.top) < barriers(schedule.top)]
    if not built:
        return Made(why="no other order has fewer barriers")
    return made_anew(form, lambda: built)


def barriers(items: Sequence[Item]) -> int:
    """How often V waits in all trips: before each instruction that touches what another one since the last wait wrote, or writes
    what that one read. What shares places is not known."""
    total, read, written = 0, set[StorageId](), set[StorageId]()
    for item in items:
        if isinstance(item, LoopStep):
            total += item.trips * barriers(item.body)
        elif item.pipe == V:
            made = _made_by(item)
            if written & {*item.srcs, *made} or read & made:
                total, read, written = total + 1, set(), set()
            read, written = read | set(item.srcs), written | made
    return total


def least(items: Sequence[Item]) -> int:
    """How often V waits at the least, in any order: as its longest chain of instructions that need each other asks for."""
    inner = sum(item.trips * least(item.body) for item in items if isinstance(item, LoopStep))
    read, written = defaultdict[StorageId, int](int), defaultdict[StorageId, int](int)
    for item in items:
        if not isinstance(item, LoopStep) and item.pipe == V:
            made = _made_by(item)
            depth = 1 + max([written[s] for s in (*item.srcs, *made)] + [read[s] for s in made])
            read |= {s: max(depth, read[s]) for s in item.srcs}
            written |= dict.fromkeys(made, depth)
    return inner + max(0, max(written.values(), default=0) - 1)


def _made_by(step: Step) -> set[StorageId]:
    return {s for s in (step.dst, step.scratch) if s is not None}
