"""The chosen schedule with its reasons: the tree, the decisions in it, the schedules that lost, and where the seconds went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tile_eg.egraph import Phase
from tile_eg.egraph.profile import RuleProfile
from tile_eg.extract.base import Extraction
from tile_eg.extract.schedule import Schedule
from tile_eg.ir.printed import Printed
from tile_eg.ops.records import record
from tile_eg.report.cost import Cost, within
from tile_eg.report.decisions import UNDECIDED, Runner, decisions_text
from tile_eg.report.differences import difference, differences
from tile_eg.report.effort import nodes_by_rule, phases_text, profile_text, rules_text, seconds_text
from tile_eg.report.schedule_tree import schedule_text
from tile_eg.report.text import duration, indent, table

if TYPE_CHECKING:
    from tile_eg.sizing.candidates import Trial


NOTICEABLY = 0.9995


@record(repr=False)
class Explanation(Printed):
    """What `explain` shows. `ranked` are the schedules with their predicted microseconds, the chosen one first.

    `timings` are seconds by stage, `total` those from the first to the last. `trials` are the block sizes that were tried where
    the author left them open. `runners` are the runners-up by the class of the decision (None: they were not looked for), and
    `profile` is what each rule cost, where that was wanted. `models` says who guided the search and who ranked, where
    a user asked for a cost model. `moves` are rows of those that were made, and of those that were not with the reason: move, of
    what, in which form of the kernel, what it gives. `notes` are told first. `intervals` are between what times
    each of `ranked` lies.
    """

    signature: str
    cost: Cost
    ranked: Sequence[tuple[Schedule, float]]
    dropped: Sequence[tuple[Schedule, Exception]]
    extraction: Extraction
    phases: Sequence[Phase]
    timings: Mapping[str, float]
    total: float
    trials: Sequence[Trial] = ()
    runners: Mapping[int, Runner] | None = None
    profile: Sequence[RuleProfile] = ()
    models: str = ""
    moves: Sequence[tuple[str, str, str, str]] = ()
    notes: Sequence[str] = ()
    intervals: Sequence[tuple[float, float] | None] = ()

    def __str__(self) -> str:
        schedule, best = self.ranked[0]
        sections = {
            "": self._headline(),
            "block sizes": self._sizes(),
            "schedule": schedule_text(schedule),
            "decisions": self._decisions(schedule, best),
            "alternatives": self._alternatives(),
            "moves": self._moves(),
            "refused": self._refused(),
            "search": self._search(),
        }
        parts = [f"{title}\n{indent(text)}" if title else text for title, text in sections.items() if text]
        return "\n\n".join([self.signature, *parts])

    def _decisions(self, schedule: Schedule, best: float) -> str:
        told = decisions_text(schedule, self.runners, best, self.cost.on_cores)
        return "\n".join(filter(None, [told, self._faster(best)]))

    def _headline(self) -> str:
        """The timeline's prediction; and whose the others are, where a user asked for a cost model."""
        return "\n".join(filter(None, [self.cost.headline(), self.models, *self.notes]))

    def _sizes(self) -> str:
        rows = [(t, _predicted(t), duration(t.estimated * 1e-6), t.problem) for t in self.trials]
        return table(rows, ("tried", "predicted", "quick estimate", ""), right=(1, 2)) if rows else ""

    def _faster(self, best: float) -> str:
        """How to get at a runner-up that is faster than what was chosen: the search model had not put it among the few."""
        found = (r for r in (self.runners or {}).values() if r.microseconds is not None and r.microseconds < NOTICEABLY * best)
        if not any(found):
            return ""
        return (
            "note: what costs less was not among the schedules that were timed: --effort full times more of them; "
            "tile-eg alternatives numbers the runners-up too, for --schedule"
        )

    def _alternatives(self) -> str:
        best, others = self.ranked[0], self.ranked[1:]
        texts = differences(((f"that of {_cost(s, us)}", s) for s, us in others), best[0])
        intervals = self.intervals[1:] or [None] * len(others)
        costs = [f"{_cost(s, us, i)}{self._undecided(us)}" for (s, us), i in zip(others, intervals, strict=True)]
        told = [f"{cost}\n{indent(text)}" for cost, text in zip(costs, texts, strict=True)]
        return "\n".join([f"{_cost(*best)}: chosen", *told])

    def _undecided(self, microseconds: float) -> str:
        """Whether what is assumed of the chip leaves open which of two schedules is quicker; both have the same launch."""
        within = self.cost.on_cores is not None and microseconds <= self.cost.on_cores[1]
        return f"; {UNDECIDED}" if within else ""

    def _moves(self) -> str:
        """The moves, and in which form of the kernel each was made where it has several."""
        if any(form for _, _, form, _ in self.moves):
            return table(self.moves, ("move", "of", "form of the kernel", "gives"))
        return table(((move, of, gives) for move, of, _, gives in self.moves), ("move", "of", "gives")) if self.moves else ""

    def _refused(self) -> str:
        best = self.ranked[0][0]
        illegal = [f"{_cycles(cost)}: {r.kind}: {r.what}" for cost, r in self.extraction.refused]
        left = [f"{_cycles(s.cost)}: {error}\n{indent(difference(s, best))}" for s, error in self.dropped]
        return "\n".join(dict.fromkeys(illegal + left))

    def _search(self) -> str:
        e, graph = self.extraction, self.ranked[0][0].graph
        solves = f"{e.extractor} extractor, {e.solves} solves, {len(e.refused)} refused"
        if e.gave_up:
            solves += "; it reached its limit of time or refusals, and the best of what was found is used"
        rules = profile_text(self.profile) if self.profile else rules_text(self.phases, nodes_by_rule(graph))
        parts = phases_text(self.phases), rules
        return "\n\n".join([*parts, solves, seconds_text(self.timings, self.total, graph)])


def _predicted(trial: Trial) -> str:
    return "-" if trial.predicted is None else duration(trial.predicted * 1e-6)


def _cost(schedule: Schedule, microseconds: float, interval: tuple[float, float] | None = None) -> str:
    between = "" if within(interval) == "-" else f" ({within(interval)})"
    return f"{duration(microseconds * 1e-6)} predicted{between}, {_cycles(schedule.cost)}"


def _cycles(cost: float) -> str:
    return f"{cost:.0f} cycles by the search model"
