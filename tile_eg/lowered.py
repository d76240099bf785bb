"""A kernel all the way down, and the steps that end there: schedules are planned, and ranked by their predicted times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tile_eg.chips import Chip
from tile_eg.errors import LimitError, PlanError, TileError, rendered
from tile_eg.ir.arrays import signature
from tile_eg.ir.kernel import Kernel, Note
from tile_eg.planned import InternalError, Planned, Run, plan_schedule
from tile_eg.report.decisions import missing_slots, summary
from tile_eg.report.explain import Explanation
from tile_eg.report.schedule_tree import ScheduleView
from tile_eg.report.text import Text
from tile_eg.search import SearchOptions

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.cost_models import RankModel
    from tile_eg.egraph import Graph, Phase
    from tile_eg.extract.base import Extraction
    from tile_eg.extract.schedule import Schedule
    from tile_eg.sizing.choose import Trial

Dropped = tuple[tuple["Schedule", Exception], ...]


@dataclass(frozen=True)
class Candidate:
    """One schedule with its plan, and the microseconds that the rank model predicts for it."""

    schedule: Schedule
    planned: Planned
    microseconds: float


@dataclass(frozen=True, repr=False)
class Lowered(Planned):
    """A kernel all the way down. `timings` are seconds by stage, `seconds` those of all; `candidates` were ranked, best first.

    `dropped` holds the schedules that the search offered and that could not be planned, with the reason. `trials` are the block
    sizes that were tried where the author left them open, best first. `told` are the notes on the kernel as it is written.
    """

    kernel: Kernel
    extraction: Extraction
    candidates: tuple[Candidate, ...]
    dropped: Dropped
    phases: Sequence[Phase]
    timings: dict[str, float]
    seconds: float
    search: SearchOptions
    trials: tuple[Trial, ...] = ()
    told: tuple[Note, ...] = ()

    @property
    def notes(self) -> tuple[Note, ...]:
        """What its author should know: where the kernel may not do what he had in mind, and what could not be kept."""
        chosen = self.candidates[0].schedule
        fewer = [n for s in (chosen, chosen.second) if s is not None for n in missing_slots(s)]
        return (*self.told, *fewer)

    @property
    def messages(self) -> tuple[str, ...]:
        """The notes with their lines of the source, and the phases of the search that did not end by themselves."""
        stopped = [(p.name, p.stopped_by) for p in self.phases if p.stopped_by]
        phases = (f"note: the phase '{name}' stopped at {why}; the best of what was found is used" for name, why in stopped)
        return (*phases, *(rendered(note, self.kernel.source) for note in self.notes))

    def __repr__(self) -> str:
        title = f"{self.kernel.name}({signature(self.kernel.tensors)})"
        return f"<{title} for {self.chip.name}, predicted {self.candidates[0].microseconds:.3g} us>"

    def judged(self, run: Run, arrays: Mapping[str, np.ndarray]) -> Run:
        """Elements that the kernel itself never writes are in `unwritten` of the run, and no finding."""
        return run.as_meant(self.kernel, arrays)

    @cached_property
    def spec(self) -> Text:
        """How `tile-eg simulate` launches the kernel's text, with the kernel's meaning, so that it can compare."""
        from tile_eg.frontend.text.meaning import meaning_text

        return self.spec_with(meaning_text(self.kernel))

    @cached_property
    def source(self) -> Text:
        """The Ascend C of the kernel, written when the schedules were planned."""
        return self.candidates[0].planned.source

    @property
    def schedule(self) -> ScheduleView:
        """The chosen schedule: its instructions in their order, where their results lie, the rules that made them."""
        return ScheduleView(self.candidates[0].schedule)

    @property
    def explanation(self) -> Explanation:
        """The schedule, the decisions in it, the schedules that lost, what was refused, and how the search went."""
        scores = [(c.schedule, c.microseconds) for c in self.candidates]
        title = f"{self.kernel.name}({signature(self.kernel.tensors)})"
        search = self.extraction, self.phases, self.timings, self.seconds
        return Explanation(title, self.cost, scores, self.dropped, *search, self.trials, models=self._models)

    @property
    def _models(self) -> str:
        """Who priced and who ranked, where the user asked for a cost model."""
        from tile_eg.cost_models import roles

        found = roles(self.search.cost_model, self.chip)
        return f"the search was guided by {found.search}, and {found.rank} decided" if self.search.cost_model else ""


def extracted(graph: Graph, chip: Chip, options: SearchOptions) -> Extraction:
    from tile_eg.cost_models import roles
    from tile_eg.extract import extract

    name, settings = options.found_by
    guide = roles(options.cost_model, chip).search
    return extract(graph, chip, k=options.schedules, model=guide, extractor=name, settings=settings)


def plan_all(schedules: Sequence[Schedule], chip: Chip, given: bool = False) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
    """The schedules with their plans, and those that cannot be planned or written with the reason; an error where none can.

    A schedule may need more flag ids or wider fields than there are: then the next one is as good as the search knows, and behind
    the last one come those that need the fewest flags; and then those with fewer slots than their author asked for. A choice that
    was `given` stands for itself: TileError where it fails.
    """
    from tile_eg.extract.simple import simple_schedules

    planned, dropped = plan_each(schedules, chip)
    if not planned and given:
        what = f"the choice that was given cannot be planned: {dropped[0][1]}"
        raise TileError(what, help="flag ids, and the fields of instructions, are not in the exported graph")
    if not planned:
        planned, others = plan_each(simple_schedules(schedules[0].graph, chip), chip)
        dropped += others
    if not planned and schedules[0].graph.values.stages:
        planned, others = plan_each([replace(s, yielding=True) for s in schedules], chip)
        dropped += others
    if not planned:
        raise _cannot_be_planned(dropped)
    return planned, dropped


def _cannot_be_planned(dropped: Dropped) -> Exception:
    """The error where every schedule was refused, as the best one was: a limit of the machine or the depths that the author gave
    are his to mend, anything else is not."""
    schedule, why = dropped[0]
    given = schedule.graph.values.stages
    if not isinstance(why, PlanError) or not (given or isinstance(why, LimitError)):
        return why
    help = "write smaller sizes: this limit of the machine is reached by every schedule that was found"
    if not isinstance(why, LimitError):
        names = ", ".join(f"{schedule.graph.values.variables[loop]} (stages={n})" for loop, n in sorted(given.items()))
        help = f"give fewer stages, or none: the search then finds what goes. The kernel gives them to loop {names}"
    return TileError(f"no schedule of this kernel can be carried out: {why.message}", why.span, help=help)


def plan_each(schedules: Sequence[Schedule], chip: Chip) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
    """What can be planned, and what is refused. Anything else that goes wrong is our fault, told with the schedule."""
    planned: list[tuple[Schedule, Planned]] = []
    dropped: list[tuple[Schedule, Exception]] = []
    for n, schedule in enumerate(schedules, 1):
        try:
            planned.append((schedule, plan_schedule(schedule, chip)))
        except (TileError, PlanError) as error:
            dropped.append((schedule, error))
        except Exception as error:
            what = f"{type(error).__name__}: {error}\nin schedule {n} of {len(schedules)}: {schedule.cost:.0f} cycles"
            raise InternalError("plan", f"{what}; {summary(schedule)}") from error
    return planned, tuple(dropped)


def ranked(planned: Sequence[tuple[Schedule, Planned]], model: RankModel) -> tuple[Candidate, ...]:
    """Fastest first; among equals, the order of the search holds."""
    from tile_eg.cost_models import predicted

    times = predicted(model, [p.program for _, p in planned])
    return fastest_first([Candidate(s, p, t) for (s, p), t in zip(planned, times, strict=True)])


def fastest_first(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    return tuple(sorted(candidates, key=lambda c: c.microseconds))
