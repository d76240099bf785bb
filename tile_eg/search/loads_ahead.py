"""Loads a trip ahead: a loop of vector cores issues what each trip loads before the work of the trip before it.

Instructions are issued in order, and V's queue holds few of them (`queue_depth` in the chips' tables): where a trip has more
instructions on V than that, its successor's loads would be issued only when most of its work is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.chips import Chip
from tile_eg.cost_models.counted import issued
from tile_eg.extract.schedule import Schedule
from tile_eg.ir.program import AIV, Instr, Loop, PipeBarrier, Tasks
from tile_eg.ir.program import walk as nodes_of
from tile_eg.ops.physical import LOADS
from tile_eg.search.bounds import floor
from tile_eg.search.candidates import Candidate
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.search.steady import made_anew, rebuilt
from tile_eg.timeline.instruction import places


def offers(form: Form) -> Iterator[Offer]:
    """One for each form whose loops load. It is made of the schedule that is the best by then."""
    if any(_loads_in_loops(c.schedule) for c in form.candidates):
        what = "the best schedule"
        yield Offer(MOVES["loads-ahead"], what, 0.0, partial(_made, form), form, closer=partial(_bound, form))


def _bound(form: Form) -> float:
    """What the best schedule takes at the least; without end where V's queue holds all that a trip gives it."""
    best, chip = form.best, form.setting.chip
    return floor(best, chip) if best and _able(best.schedule) and queued(best, chip) > chip.limits.queue_depth else float("inf")


def _able(schedule: Schedule) -> bool:
    """Whether a schedule is of vector cores alone, its choice stands for all of it, and its loops load."""
    whole = schedule.one_phase and not (schedule.finished or schedule.early)
    return whole and all(step.core == AIV for step, _ in schedule.walk()) and _loads_in_loops(schedule)


def _loads_in_loops(schedule: Schedule) -> bool:
    return any(around and around[-1].skew == 0 and step.node.op in LOADS for step, around in schedule.walk())


def queued(candidate: Candidate, chip: Chip) -> int:
    """The most places of V's queue that a trip of a loop which loads takes, its barriers included."""
    program = candidate.planned.program
    loops = (n for n in nodes_of(program.vector) if isinstance(n, Loop) and not isinstance(n, Tasks))
    loading = (loop for loop in loops if any(isinstance(n, Instr) and n.pipe == "MTE2" for n in loop.body))
    taken = {loop.var: sum(isinstance(n, PipeBarrier) for n in loop.body) for loop in loading}
    for i in issued(program, chip):
        if i.loops and i.loops[-1] in taken and i.instr.pipe == "V":
            taken[i.loops[-1]] += places(chip, i.work)
    return max(taken.values(), default=0)


def _made(form: Form) -> Made:
    assert form.best is not None
    schedule = form.best.schedule
    built = rebuilt(form, schedule, grouped=schedule.grouped, early=True)
    return made_anew(form, lambda: built) if any(_ahead(s) for s in built) else Made(why="no load can be issued a trip ahead")


def _ahead(schedule: Schedule) -> bool:
    return any(loop.skew for _, around in schedule.walk() for loop in around)
