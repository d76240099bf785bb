"""Candidates: schedules with their plans, ranked by their predicted times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import dropwhile
from typing import TYPE_CHECKING

from tile_eg.chips import Chip
from tile_eg.emit.sync.trace import FlagsRunOut
from tile_eg.errors import InternalError, LimitError, PlanError, TileError
from tile_eg.ir.machine import MAX_BLOCKS
from tile_eg.ops.records import record
from tile_eg.report.decisions import summary
from tile_eg.report.text import duration
from tile_eg.search.planned import Planned
from tile_eg.search.planning import synchronised

if TYPE_CHECKING:
    from tile_eg.cost_models import RankModel
    from tile_eg.extract.schedule import Schedule

MOST_TOLD = 3
"""Schedules that are named where a cost model fails at several at once."""
Dropped = tuple[tuple["Schedule", Exception], ...]


@record(repr=False)
class Candidate:
    """One schedule with its plan, and the microseconds that the rank model predicts for it."""

    schedule: Schedule
    planned: Planned
    microseconds: float

    def __repr__(self) -> str:
        return f"<a schedule of {self.planned.program.name}, predicted {duration(self.microseconds * 1e-6)}>"

    @property
    def interval(self) -> tuple[float, float] | None:
        """Between what times the predicted one lies; None where it is not the timeline's."""
        return self.planned.cost.interval if self.planned.timeline.microseconds == self.microseconds else None

    @property
    def launchable(self) -> bool:
        """Whether one launch can start it, and a rule says which block takes which tile."""
        from tile_eg.emit.host import launch_blocks

        return self.on_cores and launch_blocks(self.planned.program) <= MAX_BLOCKS

    @property
    def at_once(self) -> bool:
        """Whether all of its blocks run at a time."""
        from tile_eg.timeline.works import blocks_at_once

        return self.planned.program.blocks <= blocks_at_once(self.planned.program, self.planned.chip)

    @property
    def unwritable(self) -> PlanError | None:
        """Why it has no text; None where it has one."""
        return self.planned.unwritable

    @property
    def on_cores(self) -> bool:
        """Whether a rule says which block takes which tile."""
        return self.schedule.grid is not None or any(g.op == "Blocks" for g in self.schedule.graph.grids)


def distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The first candidate of each program."""
    out: dict[str, Candidate] = {}
    for c in candidates:
        out.setdefault(str(c.planned.program), c)
    return list(out.values())


def plan_all(
    schedules: Sequence[Schedule], chip: Chip, given: bool = False
) -> tuple[list[tuple[Schedule, Planned]], Dropped, Exception | None]:
    """The schedules with their plans; those that cannot be planned or written, with the reason; where none can, what to tell.

    A schedule may need more flag ids or wider fields than there are: then the next one is as good as the search knows, and behind
    the last one come those that need the fewest flags; and then those with fewer slots than their author asked for. A choice that
    was `given` stands for itself.
    """
    from tile_eg.extract.simple import simple_schedules

    planned, dropped = _writable(*plan_each(schedules, chip))
    if not planned and given:
        what = f"the choice that was given cannot be planned: {dropped[0][1]}"
        help = "flag ids, and the fields of instructions, are not in the exported graph"
        return planned, dropped, TileError(what, help=help)
    if not planned:
        planned, others = _writable(*plan_each(simple_schedules(schedules[0].graph, chip), chip))
        dropped += others
    values = schedules[0].graph.values
    if not planned and (values.stages or any(p.slots for p in values.places.values())):
        planned, others = _writable(*plan_each([replace(s, yielding=True) for s in schedules], chip))
        dropped += others
    return planned, dropped, None if planned else _cannot_be_planned(dropped)


def _writable(planned: list[tuple[Schedule, Planned]], dropped: Dropped) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
    """All of them, once one has a text; else none, with the reasons."""
    wrong: list[tuple[Schedule, Exception]] = []
    for schedule, one in planned:
        if one.unwritable is None:
            return planned, dropped
        wrong.append((schedule, one.unwritable))
    return [], (*dropped, *wrong)


def _cannot_be_planned(dropped: Dropped) -> Exception:
    """The error where every schedule was refused, as the best one was: a limit of the machine or the depths that the author gave
    are his to mend, anything else is not."""
    schedule, why = dropped[0]
    given = schedule.graph.values.stages
    if not isinstance(why, PlanError) or not (given or isinstance(why, LimitError)):
        return why
    help = getattr(why, "help", "")
    if given and (isinstance(why, FlagsRunOut) or not isinstance(why, LimitError)):
        names = ", ".join(f"{schedule.graph.values.variables[loop]} (stages={n})" for loop, n in sorted(given.items()))
        help = f"give fewer stages, or none: the search then finds what goes. The kernel gives them to loop {names}"
    return TileError(f"no schedule of this kernel can be carried out: {why.message}", why.span, help=help)


def plan_each(schedules: Sequence[Schedule], chip: Chip) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
    """What can be planned, and what is refused. Anything else that goes wrong is our fault, told with the schedule.

    Their texts are not written: only those that would be chosen need them.
    """
    planned: list[tuple[Schedule, Planned]] = []
    dropped: list[tuple[Schedule, Exception]] = []
    for n, schedule in enumerate(schedules, 1):
        try:
            planned.append((schedule, synchronised(schedule, chip)))
        except (TileError, PlanError) as error:
            dropped.append((schedule, error))
        except Exception as error:
            what = f"{type(error).__name__}: {error}\nin schedule {n} of {len(schedules)}: {schedule.cost:.0f} cycles"
            raise InternalError("plan", f"{what}; {summary(schedule)}") from error
    return planned, tuple(dropped)


@contextmanager
def naming(schedules: Sequence[Schedule]) -> Iterator[None]:
    """Where a cost model fails that is asked for these schedules, in their order, the error says which they are."""
    from tile_eg.cost_models import ModelFault

    try:
        yield
    except ModelFault as fault:
        told = schedules[:MOST_TOLD] if fault.at is None else schedules[fault.at : fault.at + 1]
        fault.notes += tuple((f"schedule {n}: {summary(s)}", None) for n, s in enumerate(told, 1 + (fault.at or 0)))
        raise


def ranked(planned: Sequence[tuple[Schedule, Planned]], model: RankModel) -> tuple[Candidate, ...]:
    """Fastest first; among equals, the order of the search holds."""
    from tile_eg.cost_models import predicted

    with naming([s for s, _ in planned]):
        times = predicted(model, [p.program for _, p in planned])
    return fastest_first([Candidate(s, p, t) for (s, p), t in zip(planned, times, strict=True)])


def fastest_first(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    return tuple(sorted(candidates, key=lambda c: c.microseconds))


def written(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates from the first one on that has a text."""
    return tuple(dropwhile(lambda c: c.unwritable is not None, candidates))
