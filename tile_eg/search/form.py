"""A form of a kernel: its values, the e-graph that they become, and the candidates that are found in it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tile_eg.chips import Chip, known_chips, load_chip
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.ops.records import record
from tile_eg.rules import selected
from tile_eg.search.any_order import refuse_any_order
from tile_eg.search.candidates import Candidate, Dropped, fastest_first, plan_all, ranked
from tile_eg.search.guided import WIDER, Guide
from tile_eg.search.options import Effort, SearchOptions
from tile_eg.search.planned import stage

if TYPE_CHECKING:
    from tile_eg.cost_models import RankModel
    from tile_eg.egraph import Graph, Node
    from tile_eg.extract.base import Extraction
    from tile_eg.ir.values import Values
    from tile_eg.ops.types import Level
    from tile_eg.sizing.estimate import Estimate


GAINED_ALIKE = 0.9
"""What a form's later schedules gain, as persistent kernels or steady, is taken to be at most so much better than what its others
did. Of the 404 persistent kernels of examples/ at their real sizes, 0.9 drops 30, none of them the best of its form; 0.95 drops
40, four of which were better than what is left. For steady loops it is assumed."""


@record
class Setting:
    """What all candidates of one search share. `timings` gathers the seconds of each step. `guide` orders what is not timed.

    `at` are the sizes of the kernel that its author left open, in words. `meets`: it is a phase of a launch whose cores meet, so
    that all of its blocks have to run at a time.
    """

    chip: Chip
    options: SearchOptions
    model: RankModel
    source: str = ""
    timings: dict[str, float] = field(default_factory=dict)
    guide: Guide | None = None
    at: str = ""
    meets: bool = False

    def step(self, name: str) -> AbstractContextManager[None]:
        return stage(name, self.source, self.timings)


@dataclass(eq=False)
class Form:
    """A kernel at its block sizes as it is written, or in smaller tiles (`moves` says how), and what was found of it.

    `problem` says why there is no candidate, and `full` which memory is too small where that is the reason. `orders` are the
    persistent grids that are worth a plan, by their blocks, and `offered` what the queue knows of: blocks whose orders it has
    and tensors that may be packed. `gained` is the least that what was made of schedules takes, as a part of their time, by what
    gains alike.
    `before` is the form that a move made this one of, where that is to be compared.
    """

    setting: Setting
    kernel: Kernel
    source: Values
    values: Values
    moves: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    dropped: Dropped = ()
    graph: Graph | None = None
    extraction: Extraction | None = None
    problem: Exception | None = None
    full: Level | None = None
    orders: dict[int, list[Node]] = field(default_factory=dict)
    offered: set[int | str] = field(default_factory=set)
    gained: dict[Hashable, float] = field(default_factory=dict)
    before: Form | None = None

    @property
    def name(self) -> str:
        """What tells it from the other forms of one search."""
        return ", ".join(filter(None, [self.setting.at, *self.moves])) or "as written"

    @property
    def launchable(self) -> Iterator[Candidate]:
        """The candidates that one launch can start, the fastest first."""
        return (c for c in self.candidates if c.launchable and (not self.setting.meets or c.at_once))

    @property
    def best(self) -> Candidate | None:
        """The fastest one that can be launched. What is faster and has no text is dropped."""
        while (first := next(self.launchable, None)) and (why := first.unwritable):
            self.candidates = tuple(c for c in self.candidates if c is not first)
            self.dropped += ((first.schedule, why),)
        return first

    @property
    def microseconds(self) -> float:
        """The predicted time of the best candidate; without end where there is none."""
        return self.best.microseconds if self.best else float("inf")

    def slower_than(self, bound: float) -> bool:
        """Whether so many microseconds are less than the best takes; texts are written only where that hangs on them."""
        first = next(self.launchable, None)
        return bound < (first.microseconds if first else float("inf")) or bound < self.microseconds

    @property
    def grids(self) -> tuple[Node, ...]:
        """The e-graph's ways to give the work to cores."""
        return self.graph.grids if self.graph else ()

    @cached_property
    def estimate(self) -> Estimate:
        """The quick estimate of the form."""
        from tile_eg.sizing.estimate import estimate

        return estimate(self.values, self.setting.chip)

    def expected(self, kind: Hashable, candidate: Candidate) -> float:
        """Microseconds that what is made of a candidate will hardly beat, by what was gained before; 0 where all are tried."""
        gained = self.gained.get(kind, 0.0) if self.setting.options.effort != "full" else 0.0
        return candidate.microseconds * gained * GAINED_ALIKE

    def note_gain(self, kind: Hashable, candidate: Candidate, made: tuple[Candidate, ...]) -> None:
        """Keeps the most that anything of this kind gained, by what was made of a candidate."""
        if made:
            gained = min(c.microseconds for c in made) / candidate.microseconds
            self.gained[kind] = min(self.gained.get(kind, float("inf")), gained)

    def add(self, found: tuple[Candidate, ...], dropped: Dropped) -> None:
        self.candidates = fastest_first((*self.candidates, *found))
        self.dropped += dropped


def values_of(kernel: Kernel, setting: Setting) -> Values:
    """What a kernel's statements mean. TileError for a mistake in it, and where its tensors do not fit the chip."""
    from tile_eg.frontend.checks import check
    from tile_eg.frontend.ssa import to_values

    with setting.step("check"):
        check_room(kernel, setting.chip)
        check(kernel)
        if setting.options.deterministic:
            refuse_any_order(kernel)
    with setting.step("values"):
        return to_values(kernel)


def check_room(kernel: Kernel, chip: Chip) -> None:
    """TileError where the tensors, or a tile, do not fit the chip's HBM; only that reads the tables of the other chips."""
    from tile_eg.frontend.checks.room import bytes_of, check_room, tiles_of

    if max(sum(map(bytes_of, kernel.tensors)), *map(bytes_of, tiles_of(kernel)), 0) > chip.hbm_bytes:
        chips = map(load_chip, known_chips(None))
        check_room(kernel, chip.name, {c.name: c.hbm_bytes for c in chips})


def searched(
    kernel: Kernel, source: Values, setting: Setting, values: Values | None = None, moves: tuple[str, ...] = (), *,
    resort: bool = True, effort: Effort | None = None,
) -> Form:  # fmt: skip
    """A kernel in the form of `values` (None: as it is written) with the candidates that are found in its e-graph.

    TileError where the rules find no instructions for it. The form says so where its tiles do not fit, or nothing can be planned.
    Without `resort` what was found too large is not looked for by another extractor.
    """
    form = Form(setting, kernel, source, values or source, moves)
    with setting.step("saturate"):
        form.graph = _saturated(form)
    with setting.step("extract"):
        found = extraction_of(form.graph, setting, effort, resort=resort)
    _take(form, found)
    return form


def search_again(form: Form) -> None:
    """Looks for schedules of a form by the extractor that was put off."""
    from tile_eg.extract import FALLBACK

    assert form.graph is not None and form.extraction is not None
    setting = form.setting
    with setting.step("extract"):
        found = extraction_of(form.graph, setting, Effort(_asked(setting), FALLBACK[form.extraction.extractor]))
    _take(form, found)


def _take(form: Form, found: Extraction) -> None:
    setting, form.extraction = form.setting, found
    form.problem, form.full = found.problem, found.full
    if found.schedules and setting.guide:
        with setting.step("order"):
            found.schedules = setting.guide.preferred(found.schedules, setting.options.schedules)
    if found.schedules:
        _plan(form, found)


def _asked(setting: Setting) -> int:
    """How many schedules an extractor is asked for."""
    return setting.options.schedules * (WIDER if setting.guide else 1)


def _plan(form: Form, found: Extraction) -> None:
    setting = form.setting
    with setting.step("plan"):
        planned, form.dropped, form.problem = plan_all(found.schedules, setting.chip, found.extractor == "choices")
    with setting.step("rank"):
        form.candidates = ranked(planned, setting.model) if planned else ()


def extraction_of(graph: Graph, setting: Setting, effort: Effort | None = None, *, resort: bool = True) -> Extraction:
    """The schedules that the options ask for, or another effort; `problem` of what is returned says why there are none.

    `resort` as in `searched`.
    """
    from tile_eg.cost_models import roles
    from tile_eg.extract import found_schedules

    options = setting.options
    name, settings = (effort.extractor, dict(effort.settings)) if effort else options.found_by
    count = effort.schedules if effort else _asked(setting)
    guide = roles(options.cost_model, setting.chip).search
    return found_schedules(graph, setting.chip, k=count, model=guide, extractor=name, settings=settings, resort=resort)


def _saturated(form: Form) -> Graph:
    """The graph under the options' rules. Where they find nothing, and all rules do, the error names those that are missing."""
    from tile_eg.egraph import saturate
    from tile_eg.transforms.column_tiles import part_of

    options, chip, values = form.setting.options, form.setting.chip, form.values
    try:
        graph = saturate(values, chip, options.budget, options.theories)
    except TileError as error:
        missing = options.left_out
        if not missing:
            raise
        try:
            phases = saturate(values, chip, options.budget, selected(options.rules)).phases
        except TileError:
            raise error from None
        needed = sorted(r for p in phases for r, n in p.matches.items() if n and r in missing)
        error.notes += ((f"rules that are left out, and matched with all rules: {', '.join(needed)}", None),)
        raise
    graph.forms |= {loop: (part_of(name),) for loop, name in values.variables.items() if loop not in form.source.variables}
    return graph
