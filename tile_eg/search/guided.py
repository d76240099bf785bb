"""A search that a context model guides: which schedules are planned, whose moves come first, what a little more load costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tile_eg.cost_models.context import PIPES, Context, context
from tile_eg.errors import PlanError, TileError, attempted, plannable
from tile_eg.search.candidates import Candidate, naming

if TYPE_CHECKING:
    from tile_eg.chips import Chip
    from tile_eg.cost_models import ContextModel
    from tile_eg.extract.schedule import Schedule

WIDER = 3
"""A context model chooses among so many times the schedules that are planned."""
STEP = 0.05
"""The part of the busiest load that is added to a pipe to see what it costs."""
CHEAPEST = 0.02
"""What a cycle costs at the least: a load that adds nothing to the candidate may bound the next one."""


class Guide:
    """A context model in one search: what it says of candidates, and what became of them."""

    def __init__(self, model: ContextModel, chip: Chip) -> None:
        self.model, self.chip = model, chip
        self.contexts: dict[int, Context] = {}
        self.told: set[int] = set()

    def preferred(self, schedules: Sequence[Schedule], count: int) -> list[Schedule]:
        """The `count` schedules that the model likes best, in its order; those that have no program stand last."""
        from tile_eg.emit import lower

        found: list[tuple[Schedule, Context]] = []
        without = []
        for schedule in schedules:
            program = plannable(partial(attempted, partial(lower.plan, schedule, self.chip)))
            if isinstance(program, TileError | PlanError):
                without.append(schedule)
            else:
                found.append((schedule, context(program, self.chip)))
        with naming([s for s, _ in found]):
            scores = self._scored([c for _, c in found])
        order = sorted(range(len(found)), key=lambda i: scores[i])
        return [*(found[i][0] for i in order), *without][:count]

    def order(self, candidates: Sequence[Candidate]) -> dict[int, int]:
        """The places of candidates, by `id`, as the model now has them: it may have learnt from those that were timed."""
        with naming([c.schedule for c in candidates]):
            self._observe(candidates)
            scores = self._scored([self._context(c) for c in candidates])
        places = sorted(range(len(candidates)), key=lambda i: scores[i])
        return {id(candidates[i]): place for place, i in enumerate(places)}

    def rates(self, best: Candidate) -> dict[str, float]:
        """By pipe what a cycle more costs the candidate, of what it costs on the dearest pipe."""
        around = self._context(best)
        step = STEP * max(around.loads.values(), default=1.0)
        first, *others = self._scored([around, *(around.more(pipe, step) for pipe in PIPES)])
        added = [max(0.0, score - first) for score in others]
        most = max(added)
        return {pipe: max(CHEAPEST, a / most) if most else 1.0 for pipe, a in zip(PIPES, added, strict=True)}

    def _context(self, candidate: Candidate) -> Context:
        if id(candidate) not in self.contexts:
            self.contexts[id(candidate)] = context(candidate.planned.program, self.chip)
        return self.contexts[id(candidate)]

    def _observe(self, candidates: Sequence[Candidate]) -> None:
        from tile_eg.cost_models import observed

        fresh = [c for c in candidates if id(c) not in self.told]
        if fresh and hasattr(self.model, "observe"):
            observed(self.model, [self._context(c) for c in fresh], [c.microseconds for c in fresh])
        self.told.update(map(id, fresh))

    def _scored(self, contexts: Sequence[Context]) -> list[float]:
        from tile_eg.cost_models import scored

        return scored(self.model, contexts) if contexts else []
