"""The one place that sees the whole way from a kernel to Ascend C, and drives it; the rooms it calls know their part only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP, Chip
from tile_eg.errors import PlanError, TileError
from tile_eg.ir.arrays import check_arguments, signature
from tile_eg.ir.kernel import Kernel, added_to
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.types import Level
from tile_eg.planned import InternalError, Planned, Run, compiled_for, plan, plan_schedule, rare_collections, stage
from tile_eg.report.decisions import summary
from tile_eg.report.explain import Explanation
from tile_eg.report.schedule_tree import ScheduleView
from tile_eg.report.text import Text
from tile_eg.rules import registry, selected
from tile_eg.search import SearchOptions, search_options

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.cost_models import RankModel
    from tile_eg.egraph import Graph, Node, Phase
    from tile_eg.extract.base import Extraction
    from tile_eg.extract.schedule import Schedule
    from tile_eg.ir.values import Values
    from tile_eg.sizing.choose import Trial


__all__ = [
    "Candidate", "InternalError", "Lowered", "Planned", "Run", "check_kernel", "lower", "meaning", "plan", "plan_schedule",
    "stage",
]  # fmt: skip

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
    sizes that were tried where the author left them open, best first.
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

    def __repr__(self) -> str:
        title = f"{self.kernel.name}({signature(self.kernel.tensors)})"
        return f"<{title} for {self.chip.name}, predicted {self.candidates[0].microseconds:.3g} us>"

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
        ranked = [(c.schedule, c.microseconds) for c in self.candidates]
        title = f"{self.kernel.name}({signature(self.kernel.tensors)})"
        search = self.extraction, self.phases, self.timings, self.seconds
        return Explanation(title, self.cost, ranked, self.dropped, *search, self.trials, models=self._models)

    @property
    def _models(self) -> str:
        """Who priced and who ranked, where the user asked for a cost model."""
        from tile_eg.cost_models import roles

        found = roles(self.search.cost_model, self.chip)
        return f"the search was guided by {found.search}, and {found.rank} decided" if self.search.cost_model else ""


@rare_collections()
def lower(kernel: Kernel, chip: str = DEFAULT_CHIP, *, search: SearchOptions | None = None) -> Lowered:
    """Compiles a kernel for a chip. TileError is the user's to mend, with its place; InternalError is ours.

    The search, as its options say, keeps a few schedules; a rank model decides among them once they are planned. Block sizes
    that are left open are found first: the few that look best go the whole way.
    """
    from tile_eg.cost_models import roles

    options = search or search_options()
    with stage("load", kernel.source):
        rank = roles(options.cost_model, compiled_for(chip)).rank
    if isinstance(kernel, OpenKernel):
        return _sized(kernel, chip, rank, options)
    return _finished(_block_by_block(kernel, chip, rank, options), rank)


def _finished(made: Lowered, rank: str) -> Lowered:
    """The kernel with the best grid; where its tiles fill UB, that or its form with smaller ones, whichever is faster."""
    from tile_eg.frontend.ssa import to_values
    from tile_eg.sizing.parted import crowded

    best = _in_phases(_with_grid(made, rank), rank)
    form = crowded(to_values(made.kernel), made.chip, not made.search.exact_math) if made.search.effort != "none" else None
    if form is None:
        return best
    try:
        other = _with_grid(_block_by_block(made.kernel, made.chip.name, rank, made.search, form), rank)
    except TileError:
        return best
    seconds = best.seconds + other.seconds
    timings = {name: best.timings.get(name, 0.0) + other.timings.get(name, 0.0) for name in best.timings | other.timings}
    fastest = min(best, other, key=lambda m: m.candidates[0].microseconds)
    return replace(fastest, timings=timings, seconds=seconds)


def _block_by_block(kernel: Kernel, chip: str, rank: str, options: SearchOptions, form: Values | None = None) -> Lowered:
    """The kernel, or this form of it, with a launch block for each tile of its grid."""
    start, timings = perf_counter(), dict[str, float]()
    with stage("load", kernel.source, timings):
        from tile_eg.cost_models import rank_model
        from tile_eg.frontend.check import check
        from tile_eg.frontend.ssa import to_values

        target = compiled_for(chip)
        model = rank_model(rank, target)

    def step(name: str, do: Callable[..., Any], *arguments: Any) -> Any:
        with stage(name, kernel.source, timings):
            return do(*arguments)

    step("check", check, kernel)
    values = form or step("values", to_values, kernel)
    graph, extraction = _search(values, target, options, step)
    planned, dropped = step("plan", _plan_all, (extraction.best, *extraction.alternatives), target)
    candidates = step("rank", _ranked, planned, model)
    program = candidates[0].planned.program
    seconds = perf_counter() - start
    return Lowered(program, target, kernel, extraction, candidates, dropped, graph.phases, timings, seconds, options)


def _allowed(schedule: Schedule) -> bool:
    """Whether a rule gives a launch block to each tile, where a schedule has it so."""
    return schedule.grid is not None or any(g.op == "Blocks" for g in schedule.graph.grids)


ORDERS = {"none": 0, "quick": 3, "full": None}
"""In how many orders a persistent kernel's tiles are tried, by the effort; None: in all that there are."""
RIVALS, STRAIGHT, NEAR, OTHERS = 2, 3, 1.15, 1.5
"""Of so many schedules (of more, where they have no loops: such a block overlaps with the next tile's alone), those that take at
most so many times as long as the best are tried as persistent kernels; also of those whose blocks take another number of cores,
where their best takes at most so many times as long as the best of all."""


def _with_grid(made: Lowered, rank: str) -> Lowered:
    """The kernel, or one of its schedules with launch blocks that go through several tiles, whichever is faster."""
    from tile_eg.cost_models import rank_model

    start, timings = perf_counter(), dict(made.timings)
    with stage("grid", made.kernel.source, timings):
        most = ORDERS[made.search.effort]
        candidates, dropped = _over_tiles(made.candidates, made.chip, rank_model(rank, made.chip), most)
        candidates = tuple(c for c in candidates if _allowed(c.schedule))
        if not candidates:
            raise TileError("no rule says which launch block takes which tile", help="the rule 'block-a-tile' is left out")
    program, seconds = candidates[0].planned.program, made.seconds + perf_counter() - start
    return replace(made, program=program, candidates=candidates, dropped=made.dropped + dropped, timings=timings, seconds=seconds)


def _over_tiles(
    candidates: tuple[Candidate, ...], chip: Chip, model: RankModel, most: int | None
) -> tuple[tuple[Candidate, ...], Dropped]:
    """The candidates, and those near the best with launch blocks that go through several tiles, ranked; and what failed.

    The orders of tiles are tried on the best of these: they share its plan.
    """
    from tile_eg.emit.tasks import reordered
    from tile_eg.extract.grid import orders, with_grids
    from tile_eg.timeline.works import blocks_at_once

    by_cores: dict[int, list[Candidate]] = {}
    whole = [c for c in candidates if c.schedule.parts is None]
    for c in (c for c in whole if c.microseconds <= OTHERS * whole[0].microseconds):
        by_cores.setdefault(blocks_at_once(c.planned.program, chip), []).append(c)
    made: list[Candidate] = []
    dropped: Dropped = ()
    for cores, found in by_cores.items():
        rivals = RIVALS if found[0].schedule.loops else STRAIGHT
        alike = [c for c in found[:rivals] if c.microseconds <= NEAR * found[0].microseconds]
        if grids := orders(alike[0].schedule, chip, cores, most):
            planned, failed = _plan_each([s for c in alike for s in with_grids(c.schedule, grids[0], chip)], chip)
            first = _with_halves(_ranked(planned, model), chip, model)
            others = [replace(first[0].schedule, grid=g) for g in grids[1:]] if first else []
            planned = [(s, Planned(reordered(first[0].planned.program, s), chip)) for s in others]
            made += [*first, *_ranked(planned, model)]
            dropped += failed
    return _fastest_first((*candidates, *made)), dropped


ALIKE = 1.02
"""Persistent schedules that take at most so many times as long as the best are tried with their product in halves, too."""


def _with_halves(ranked: tuple[Candidate, ...], chip: Chip, model: RankModel) -> tuple[Candidate, ...]:
    """The persistent kernels, and the best of them with results that leave L0C in halves, ranked."""
    from tile_eg.extract.grid import in_halves

    near = (c for c in ranked if c.microseconds <= ALIKE * ranked[0].microseconds)
    halved = [s for c in near if c.schedule.persistent and (s := in_halves(c.schedule))]
    return _fastest_first((*ranked, *_ranked(_plan_each(halved, chip)[0], model)))


PARTS = {"none": 0, "quick": 2, "full": None}
"""How many ways to part a long sum are tried, by the effort; None: all that promise a gain."""


def _in_phases(made: Lowered, rank: str) -> Lowered:
    """The kernel, or one whose launch has two phases with a meeting of all cores between, whichever is faster."""
    return _in_strips(_in_parts(made, rank), rank)


def _in_parts(made: Lowered, rank: str) -> Lowered:
    """The kernel, or one with its long sum in parts for cores that have nothing to do, whichever is faster."""
    most = PARTS[made.search.effort]
    offered = any(g.op in ("Parts", "Added") for g in made.extraction.best.graph.grids)
    if most == 0 or not offered or any(c.schedule.parts for c in made.candidates):
        return made
    from tile_eg.cost_models import rank_model
    from tile_eg.egraph.parts import in_parts
    from tile_eg.extract.parts import worth_parting
    from tile_eg.frontend.ssa import to_values

    start, timings, timeline = perf_counter(), dict(made.timings), made.timeline
    with stage("parts", made.kernel.source, timings):
        one = in_parts(to_values(made.kernel), 1, 1).bytes
        worth = worth_parting(made.extraction.best.graph, timeline.cycles, timeline.hbm_cycles, one, made.chip, most)
        tried = [parted(node, made, rank_model(rank, made.chip)) for node in worth]
    found = _fastest_first((*made.candidates, *(c for candidates, _ in tried for c in candidates)))
    dropped = made.dropped + tuple(d for _, failed in tried for d in failed)
    seconds = made.seconds + perf_counter() - start
    return replace(made, program=found[0].planned.program, candidates=found, dropped=dropped, timings=timings, seconds=seconds)


def parted(node: Node, made: Lowered, model: RankModel) -> tuple[tuple[Candidate, ...], Dropped]:
    """A kernel's long sum in as many parts as `node` says: the best schedule of each phase as one launch; and what failed."""
    from tile_eg.egraph.parts import in_parts
    from tile_eg.emit.phases import CannotMeet, one_launch
    from tile_eg.frontend.ssa import to_values

    if node.op == "Added":
        return _added_up(node, made, model)
    parts = in_parts(to_values(made.kernel), node.payload[0], made.chip.vector_cores)
    phases = [_phase(values, made, model) for values in (parts.first, parts.second)]
    dropped = tuple(d for _, failed in phases for d in failed)
    if not all(found for found, _ in phases):
        return (), dropped
    first, second = (found[0] for found, _ in phases)
    first.schedule.graph.grids = made.extraction.best.graph.grids  # what could be decided of the kernel, not of the phase
    schedule = replace(first.schedule, parts=node, second=second.schedule)
    try:
        planned = Planned(one_launch(first.planned.program, second.planned.program, made.chip), made.chip)
    except CannotMeet as error:
        return (), (*dropped, (schedule, error))
    return _ranked([(schedule, planned)], model), dropped


def _added_up(node: Node, made: Lowered, model: RankModel) -> tuple[tuple[Candidate, ...], Dropped]:
    """A kernel whose blocks add up parts of its sums in GM: its schedules that can do so, ranked; and what failed."""
    from tile_eg.egraph.parts import added
    from tile_eg.frontend.ssa import to_values

    schedules = _schedules(added(to_values(made.kernel), node.payload[0]), made)
    for s in schedules:
        s.graph.grids = made.extraction.best.graph.grids
    planned, dropped = _plan_each([replace(s, parts=node) for s in schedules], made.chip)
    return _ranked(planned, model)[:1], dropped


def _in_strips(made: Lowered, rank: str) -> Lowered:
    """The kernel, or one that copies an operand into strips of 16 columns while its first tiles are computed."""
    best = made.candidates[0].schedule
    offered = [g for g in best.graph.grids if g.op == "Strips"]
    if made.search.effort == "none" or not offered or not best.persistent or made.timeline.bound != "AIC.MTE2":
        return made
    from tile_eg.cost_models import rank_model

    start, timings = perf_counter(), dict(made.timings)
    with stage("strips", made.kernel.source, timings):
        tried = [stripped(node, made, rank_model(rank, made.chip)) for node in offered]
    found = _fastest_first((*made.candidates, *(c for candidates, _ in tried for c in candidates)))
    dropped = made.dropped + tuple(d for _, failed in tried for d in failed)
    seconds = made.seconds + perf_counter() - start
    return replace(made, program=found[0].planned.program, candidates=found, dropped=dropped, timings=timings, seconds=seconds)


def stripped(node: Node, made: Lowered, model: RankModel) -> tuple[tuple[Candidate, ...], Dropped]:
    """A kernel that loads the tensor that `node` names from its strips once they are made; and what failed.

    The first tiles are done as in the best schedule that has one phase, as many as the copy takes.
    """
    from tile_eg.egraph.strips import with_strips
    from tile_eg.emit.strips import tiles_beside
    from tile_eg.extract.grid import with_grid
    from tile_eg.frontend.ssa import to_values

    first = next((c for c in made.candidates if c.schedule.persistent and c.schedule.second is None), None)
    if first is None or first.schedule.grid is None:
        return (), ()
    grid, values = first.schedule.grid, with_strips(to_values(made.kernel), node.payload[0])
    planned, dropped = _plan_each([with_grid(s, grid, made.chip) for s in _schedules(values, made)], made.chip)
    ranked = _with_halves(_ranked(planned, model), made.chip, model)
    if not ranked:
        return (), dropped
    schedules = []
    for n in tiles_beside(first.planned.program, values, made.chip):
        second = replace(ranked[0].schedule, tiles=(n, values.blocks - n))
        schedules.append(replace(first.schedule, parts=node, second=second, tiles=(0, n)))
    launches, failed = _plan_each(schedules, made.chip)
    return _ranked(launches, model), (*dropped, *failed)


def _schedules(values: Values, made: Lowered) -> list[Schedule]:
    """The schedules that the search keeps for a phase; none where there are none."""
    from tile_eg.egraph import saturate

    try:
        options = made.search
        return _extracted(saturate(values, made.chip, options.budget, options.theories), made.chip, options).schedules
    except TileError:
        return []


def _phase(values: Values, made: Lowered, model: RankModel) -> tuple[tuple[Candidate, ...], Dropped]:
    """One phase of a launch, ranked: its blocks all run at a time."""
    from tile_eg.extract.grid import orders, with_grid
    from tile_eg.timeline.works import blocks_at_once

    planned, dropped = _plan_each(_schedules(values, made), made.chip)
    cores = [blocks_at_once(p.program, made.chip) for _, p in planned]
    over = [(s, n) for (s, p), n in zip(planned, cores, strict=True) if p.program.blocks > n]
    if over:
        over_tiles = [with_grid(s, g, made.chip) for s, n in over for g in orders(s, made.chip, n, 1)]
        planned, dropped = _plan_each(over_tiles, made.chip)
    return _ranked(planned, model), dropped


def _sized(kernel: OpenKernel, chip: str, rank: str, options: SearchOptions) -> Lowered:
    """The kernel at the best of the block sizes that were tried."""
    from tile_eg.frontend.ssa import to_values
    from tile_eg.sizing.choose import Stages, choose

    check_kernel(kernel)
    time = lambda made: made.candidates[0].microseconds  # noqa: E731
    may_part = PARTS[options.effort] != 0 and "split-depth" in registry(options.theories)
    part = (lambda made: _in_parts(made, rank)) if may_part else None
    if options.effort == "full":  # the sizes are found with less, and the search is done once
        trial = replace(options, effort="quick")
        stages = Stages(
            lambda k: _block_by_block(k, chip, rank, trial), lambda m: lower(m.kernel, chip, search=options), time, 1,
            part,
        )  # fmt: skip
    else:
        stages = Stages(lambda k: _block_by_block(k, chip, rank, options), lambda m: _finished(m, rank), time, part=part)
    timings: dict[str, float] = {}
    with stage("block sizes", kernel.source, timings):
        chosen = choose(kernel, compiled_for(chip), options.sizes, to_values, stages, (TileError, InternalError))
    others = {"block sizes": timings["block sizes"] - chosen.made.seconds}
    return replace(chosen.made, trials=chosen.trials, timings=chosen.made.timings | others, seconds=timings["block sizes"])


def _search(values: Values, chip: Chip, options: SearchOptions, step: Callable[..., Any]) -> tuple[Graph, Extraction]:
    """The schedules of a kernel; where its tiles do not fit together, of the first of its forms with smaller ones that do."""
    from tile_eg.extract import TooLarge

    def searched(form: Values) -> tuple[Graph, Extraction]:
        graph = step("saturate", _saturated, form, chip, options)
        return graph, step("extract", _extracted, graph, chip, options)

    try:
        return searched(values)
    except TooLarge as whole:
        for form in _smaller(values, chip, options, whole.level):
            try:
                return searched(form)
            except TooLarge:
                continue
        raise


FORMS = 4  # forms with smaller tiles that are tried where those of a kernel do not fit UB


def _smaller(values: Values, chip: Chip, options: SearchOptions, level: Level) -> Iterator[Values]:
    """A kernel's forms with smaller tiles: rows in panels, as few as fit L0C; for UB also columns, as is estimated to be best."""
    if level == Level.L0C:
        from tile_eg.egraph.panels import PANELS, in_panels

        yield from (parted for n in PANELS if (parted := in_panels(values, n)))
    elif level == Level.UB:
        from tile_eg.sizing.parted import parted as fitting

        yield from fitting(values, chip, reorder=not options.exact_math)[:FORMS]


def _saturated(values: Values, chip: Chip, options: SearchOptions) -> Graph:
    """The graph under the options' rules. Where they find nothing, and all rules do, the error names those that are missing."""
    from tile_eg.egraph import saturate

    try:
        return saturate(values, chip, options.budget, options.theories)
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


def _extracted(graph: Graph, chip: Chip, options: SearchOptions) -> Extraction:
    from tile_eg.cost_models import roles
    from tile_eg.extract import extract

    name, settings = options.found_by
    guide = roles(options.cost_model, chip).search
    return extract(graph, chip, k=options.schedules, model=guide, extractor=name, settings=settings)


def check_kernel(kernel: Kernel) -> None:
    """TileError unless names, types, shapes and bounds fit, every read follows a write, and every loop is a fold."""
    from tile_eg.frontend.check import check
    from tile_eg.frontend.ssa import to_values

    with stage("check", kernel.source):
        check(kernel)
        to_values(kernel)


def meaning(kernel: Kernel, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the kernel's outputs are by its own sequential meaning, computed in NumPy; arrays as in `Planned.run`."""
    from tile_eg.ir.reference import run_kernel

    check_arguments(kernel.tensors, arrays, added_to(kernel))
    with stage("reference", kernel.source):
        return run_kernel(kernel, arrays)


def _plan_all(schedules: Sequence[Schedule], chip: Chip) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
    """The schedules with their plans, and those that cannot be planned or written with the reason; an error where none can.

    A schedule may need more flag ids or wider fields than there are: then the next one is as good as the search knows, and behind
    the last one come those that need the fewest flags.
    """
    from tile_eg.extract.simple import simple_schedules

    planned, dropped = _plan_each(schedules, chip)
    if not planned:
        planned, others = _plan_each(simple_schedules(schedules[0].graph, chip), chip)
        dropped += others
    if not planned:
        raise dropped[0][1]
    return planned, dropped


def _plan_each(schedules: Sequence[Schedule], chip: Chip) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
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


def _ranked(planned: Sequence[tuple[Schedule, Planned]], model: RankModel) -> tuple[Candidate, ...]:
    """Fastest first; among equals, the order of the search holds."""
    from tile_eg.cost_models import predicted

    times = predicted(model, [p.program for _, p in planned])
    return _fastest_first([Candidate(s, p, t) for (s, p), t in zip(planned, times, strict=True)])


def _fastest_first(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    return tuple(sorted(candidates, key=lambda c: c.microseconds))
