"""What the search gives: a kernel all the way down, with every candidate and every move that was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from tile_eg.errors import rendered
from tile_eg.ir.arrays import signature
from tile_eg.ir.kernel import Kernel, Note
from tile_eg.ops.records import record
from tile_eg.report.any_order import sums_in_any_order
from tile_eg.report.decisions import missing_slots
from tile_eg.report.text import Text
from tile_eg.search.candidates import Candidate, Dropped, distinct
from tile_eg.search.options import SearchOptions
from tile_eg.search.planned import Planned, Run

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.egraph import Phase
    from tile_eg.extract.base import Extraction
    from tile_eg.report.explain import Explanation
    from tile_eg.report.schedule_tree import ScheduleView
    from tile_eg.search.form import Form
    from tile_eg.search.queue import Tried
    from tile_eg.sizing.candidates import Trial


@record(repr=False)
class Lowered(Planned):
    """A compiled kernel. `timings` are seconds by stage, `seconds` their sum; `ranked` are the candidates, best first: the first
    one has a text, for the others that is known once they are asked for (`candidates`).

    `refused` holds the schedules that the search offered and that could not be planned, with the reason. `trials` are the block
    sizes that were tried where the author left them open, best first. `told` are the notes on the kernel as it is written.
    `tried` are the moves of the search, made or not, in the order in which they were taken up; `form` is the form of the kernel
    that the best candidate is a schedule of. `failed` says how a cost model failed, so that the default one took over.
    """

    kernel: Kernel
    extraction: Extraction
    ranked: tuple[Candidate, ...]
    refused: Dropped
    phases: Sequence[Phase]
    timings: dict[str, float]
    seconds: float
    search: SearchOptions
    trials: tuple[Trial, ...] = ()
    told: tuple[Note, ...] = ()
    tried: tuple[Tried, ...] = ()
    form: Form | None = None
    failed: str = ""

    @property
    def chosen(self) -> Candidate:
        return self.ranked[0]

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """What could be launched instead, too, the fastest first."""
        return tuple(c for c in self.ranked if c.unwritable is None)

    @cached_property
    def dropped(self) -> Dropped:
        """The schedules that could not be planned or written, with the reason."""
        return (*self.refused, *((c.schedule, why) for c in self.ranked if (why := c.unwritable)))

    @property
    def notes(self) -> tuple[Note, ...]:
        """What its author should know: where the kernel may not do what he had in mind, and what could not be kept."""
        chosen = self.chosen.schedule
        fewer = [n for s in chosen.phases for n in missing_slots(s)]
        return (*self.told, *fewer)

    @property
    def messages(self) -> tuple[str, ...]:
        """The notes with their lines of the source, and the phases of the search that did not end by themselves."""
        stopped = [(p.name, p.stopped_by) for p in self.phases if p.stopped_by]
        phases = (f"note: the phase '{name}' stopped at {why}; the best of what was found is used" for name, why in stopped)
        models = (f"note: {self.failed}; the default models took over",) if self.failed else ()
        return (*models, *phases, *(rendered(note, self.kernel.source) for note in self.notes))

    def __repr__(self) -> str:
        title = f"{self.kernel.name}({signature(self.kernel.tensors)})"
        return f"<{title} for {self.chip.name}, predicted {self.chosen.microseconds:.3g} us>"

    @cached_property
    def alike(self) -> frozenset[str]:  # type: ignore[override]
        from tile_eg.frontend.checks.kernel import stored_alike

        return stored_alike(self.kernel)

    def judged(self, run: Run, arrays: Mapping[str, np.ndarray]) -> Run:
        """Elements that the kernel itself never writes are in `unwritten` of the run, and no finding."""
        return run.as_meant(self.kernel, arrays)

    @cached_property
    def spec(self) -> Text:
        """How `tile-eg simulate` launches the kernel's text, with the kernel's meaning, so that it can compare."""
        from tile_eg.frontend.text.meaning import meaning_text

        return self.spec_with("" if any(t.strides for t in self.kernel.tensors) else meaning_text(self.kernel))

    @cached_property
    def source(self) -> Text:
        """The Ascend C of the kernel."""
        return self.chosen.planned.source

    @property
    def schedule(self) -> ScheduleView:
        """The chosen schedule: its instructions in their order, where their results lie, the rules that made them."""
        from tile_eg.report.schedule_tree import ScheduleView

        return ScheduleView(self.chosen.schedule)

    @property
    def explanation(self) -> Explanation:
        """The schedule, the decisions in it, the schedules that lost, what was refused, and how the search went."""
        from tile_eg.report.explain import Explanation
        from tile_eg.search.told import rows

        ranked = distinct(self.candidates)
        scores = [(c.schedule, c.microseconds) for c in ranked]
        title = f"{self.kernel.name}({signature(self.kernel.tensors)})"
        notes = sums_in_any_order(self.program, self.kernel)
        search = self.extraction, self.phases, self.timings, self.seconds
        told = {"models": self._models, "moves": rows(self.tried, self.search.effort), "notes": notes}
        lie = [c.interval for c in ranked]
        return Explanation(title, self.cost, scores, self.dropped, *search, self.trials, intervals=lie, **told)  # type: ignore[arg-type]

    @property
    def _models(self) -> str:
        """Who priced and who ranked, where the user asked for a cost model."""
        from tile_eg.cost_models import roles

        if self.failed or not self.search.cost_model:
            return f"{self.failed}; the default models took over" if self.failed else ""
        found = roles(self.search.cost_model, self.chip)
        ordered = f"candidates were ordered by {found.context}, " if found.context else ""
        return f"the search was guided by {found.search}, {ordered}and {found.rank} decided"
