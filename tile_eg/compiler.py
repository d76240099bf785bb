"""The one place that sees the whole way from a kernel to Ascend C, and drives it; the rooms it calls know their part only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP, Chip, known_chips, load_chip
from tile_eg.errors import TileError
from tile_eg.ir.arrays import check_arguments, numpy_dtype, signature
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.program import Program
from tile_eg.ir.types import Level
from tile_eg.report.cost import Cost
from tile_eg.report.explain import Explanation
from tile_eg.report.memory import MemoryMap
from tile_eg.report.schedule_tree import ScheduleView
from tile_eg.report.text import Text
from tile_eg.rules import selected
from tile_eg.search import SearchOptions, search_options

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.cost_models import RankModel
    from tile_eg.egraph import Graph, Phase
    from tile_eg.extract.base import Extraction
    from tile_eg.extract.schedule import Schedule
    from tile_eg.ir.values import Values
    from tile_eg.simulator.findings import Counts, Finding
    from tile_eg.sizing.choose import Trial
    from tile_eg.timeline.engine import Timeline


Dropped = tuple[tuple["Schedule", Exception], ...]


class InternalError(Exception):
    """A fault of tile_eg itself: the user's kernel is not to blame. `stage` says where on the way it happened."""

    def __init__(self, stage: str, what: str) -> None:
        note = "note: this is a fault of tile_eg, not of your kernel: please report it"
        super().__init__(f"internal error in '{stage}': {what}\n{note}")
        self.stage = stage


@contextmanager
def stage(name: str, source: str = "", timings: dict[str, float] | None = None) -> Iterator[None]:
    """Runs one part of the way: a user's error learns its source text, anything else unforeseen becomes an InternalError.

    egglog's panics are no Exceptions, so everything but an interrupt is caught. The seconds are added to `timings[name]`.
    """
    start = perf_counter()
    try:
        yield
    except TileError as error:
        error.source = error.source or source
        raise
    except (InternalError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise InternalError(name, f"{type(error).__name__}: {error}") from error
    finally:
        if timings is not None:
            timings[name] = timings.get(name, 0.0) + perf_counter() - start


@dataclass(frozen=True)
class Run:
    """What one run of the emitted text in the simulator gave: outputs by tensor name, findings, and counts of what was done."""

    outputs: dict[str, np.ndarray]
    findings: Sequence[Finding]
    counts: Counts

    def __getitem__(self, name: str) -> np.ndarray:
        return self.outputs[name]

    def raise_findings(self) -> None:
        """InternalError if the simulator found a race, a deadlock or a broken limit: the text that we emitted is wrong."""
        if self.findings:
            raise InternalError("run", "the emitted kernel breaks the machine's rules\n" + "\n".join(map(str, self.findings)))


@dataclass(frozen=True)
class Planned:
    """A synchronised program on a chip, with everything that follows from it alone."""

    program: Program
    chip: Chip

    @cached_property
    def source(self) -> Text:
        """The Ascend C of the kernel: one self-contained file."""
        from tile_eg.emit.ascend_c import kernel_text

        with stage("write Ascend C"):
            return Text(kernel_text(self.program))

    @cached_property
    def host(self) -> Text:
        """The C++ that launches the kernel: shapes, workspace, blocks."""
        from tile_eg.emit.host import host_text

        with stage("write the host part"):
            return Text(host_text(self.program))

    @cached_property
    def timeline(self) -> Timeline:
        from tile_eg.timeline import engine

        with stage("time the program"):
            return engine.run(self.program, self.chip)

    @cached_property
    def cost(self) -> Cost:
        """The predicted time, and how it divides over pipes and memory levels."""
        from tile_eg.timeline.summary import handover_range

        timeline = self.timeline
        with stage("time the program"):
            return Cost(timeline, handover_range(self.program, self.chip))

    def trace(self) -> dict[str, Any]:
        """The timeline of one block as a Chrome trace, for `json.dump`: Perfetto opens it."""
        from tile_eg.timeline import engine
        from tile_eg.timeline.trace import chrome_trace

        with stage("trace the program"):
            return chrome_trace(self.program, engine.run(self.program, self.chip, exact=True))

    @cached_property
    def memory(self) -> MemoryMap:
        """Where every buffer lies, and how full each memory is."""
        return MemoryMap(self.program, self.chip)

    def run(self, arrays: Mapping[str, np.ndarray], *, strict: bool = True, order: int | None = None) -> Run:
        """The emitted text, run in the simulator on an array for every input, by tensor name.

        TileError where an array does not fit. InternalError where the simulator finds that the text breaks the machine's rules,
        unless `strict` is off: then the findings are in the result. `order` is a seed: instructions then take effect in an
        unfavourable order among those that the flags allow, not in that of the program.
        """
        check_arguments(self.program.tensors, arrays)
        with stage("simulate"):
            run = _simulated(self, arrays, order)
        if strict:
            run.raise_findings()
        return run


def _simulated(planned: Planned, arrays: Mapping[str, np.ndarray], order: int | None) -> Run:
    import numpy as np

    from tile_eg.emit.host import launch_blocks
    from tile_eg.emit.names import kernel_symbol
    from tile_eg.simulator.run import simulate

    p = planned.program
    written = [i for i, t in enumerate(p.tensors) if t.output]
    done = simulate(
        planned.source,
        kernel_symbol(p),
        [np.empty(t.shape, numpy_dtype(t.dtype)) if t.output else arrays[t.name] for t in p.tensors],
        kernel_type=p.kernel_type,
        launch=launch_blocks(p),
        workspace=p.workspace,
        outputs=written,
        capacities={str(level): memory.bytes for level, memory in planned.chip.memories.items()},
        order=order,
    )
    return Run({p.tensors[i].name: a for i, a in zip(written, done.outputs, strict=True)}, done.findings, done.counts)


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
        return Explanation(title, self.cost, ranked, self.dropped, *search, self.trials)


def lower(kernel: Kernel, chip: str = DEFAULT_CHIP, *, rank: str = "timeline", search: SearchOptions | None = None) -> Lowered:
    """Compiles a kernel for a chip. TileError is the user's to mend, with its place; InternalError is ours.

    The search, as its options say, keeps a few schedules; the rank model (its name, or "module:Class") decides among them once
    they are planned. Block sizes that are left open are found first: the few that look best go the whole way.
    """
    if isinstance(kernel, OpenKernel):
        return _sized(kernel, chip, rank, search or search_options())
    return _with_grid(_block_by_block(kernel, chip, rank, search or search_options()), rank)


def _block_by_block(kernel: Kernel, chip: str, rank: str, options: SearchOptions) -> Lowered:
    """The kernel with a launch block for each tile of its grid."""
    start, timings = perf_counter(), dict[str, float]()
    with stage("load", kernel.source, timings):
        from tile_eg.cost_models import rank_model
        from tile_eg.frontend.check import check
        from tile_eg.frontend.ssa import to_values

        target = _target(chip)
        model = rank_model(rank, target)

    def step(name: str, do: Callable[..., Any], *arguments: Any) -> Any:
        with stage(name, kernel.source, timings):
            return do(*arguments)

    step("check", check, kernel)
    values = step("values", to_values, kernel)
    graph, extraction = _search(values, target, options, step)
    planned, dropped = step("plan", _plan_all, (extraction.best, *extraction.alternatives), target)
    candidates = step("rank", _ranked, planned, model)
    program = candidates[0].planned.program
    seconds = perf_counter() - start
    return Lowered(program, target, kernel, extraction, candidates, dropped, graph.phases, timings, seconds, options)


ORDERS = {"none": 0, "quick": 3, "full": None}
"""In how many orders a persistent kernel's tiles are tried, by the effort; None: in all that there are."""
RIVALS, NEAR = 2, 1.15
"""Of so many schedules, those that take at most so many times as long as the best are tried as persistent kernels."""


def _with_grid(made: Lowered, rank: str) -> Lowered:
    """The kernel, or one of its schedules with launch blocks that go through several tiles, whichever is faster."""
    from tile_eg.cost_models import rank_model

    start, timings = perf_counter(), dict(made.timings)
    with stage("grid", made.kernel.source, timings):
        most = ORDERS[made.search.effort]
        candidates, dropped = _over_tiles(made.candidates, made.chip, rank_model(rank, made.chip), most)
    program, seconds = candidates[0].planned.program, made.seconds + perf_counter() - start
    return replace(made, program=program, candidates=candidates, dropped=made.dropped + dropped, timings=timings, seconds=seconds)


def _over_tiles(
    candidates: tuple[Candidate, ...], chip: Chip, model: RankModel, most: int | None
) -> tuple[tuple[Candidate, ...], Dropped]:
    """The candidates, and those near the best with launch blocks that go through several tiles, ranked; and what failed.

    The orders of tiles are tried on the best of these: they share its plan.
    """
    from tile_eg.emit.tasks import reordered
    from tile_eg.extract.grid import orders, with_grid
    from tile_eg.timeline.works import blocks_at_once

    near = [c for c in candidates[:RIVALS] if c.microseconds <= NEAR * candidates[0].microseconds]
    grids = orders(near[0].schedule, chip, blocks_at_once(near[0].planned.program, chip), most)
    if not grids:
        return candidates, ()
    near = [c for c in near if blocks_at_once(c.planned.program, chip) == grids[0].payload[0]]
    planned, dropped = _plan_each([with_grid(c.schedule, grids[0], chip) for c in near], chip)
    if not planned:
        return candidates, dropped
    made = _ranked(planned, model)
    others = [replace(made[0].schedule, grid=g) for g in grids[1:]]
    planned = [(s, Planned(reordered(made[0].planned.program, s), chip)) for s in others]
    return _fastest_first((*candidates, *made, *_ranked(planned, model))), dropped


def _sized(kernel: OpenKernel, chip: str, rank: str, options: SearchOptions) -> Lowered:
    """The kernel at the best of the block sizes that were tried."""
    from tile_eg.frontend.ssa import to_values
    from tile_eg.sizing.choose import Stages, choose

    check_kernel(kernel)
    stages = Stages(
        lambda k: _block_by_block(k, chip, rank, options),
        lambda made: _with_grid(made, rank),
        lambda made: made.candidates[0].microseconds,
    )
    timings: dict[str, float] = {}
    with stage("block sizes", kernel.source, timings):
        chosen = choose(kernel, _target(chip), options.sizes, to_values, stages, (TileError, InternalError))
    others = {"block sizes": timings["block sizes"] - chosen.made.seconds}
    return replace(chosen.made, trials=chosen.trials, timings=chosen.made.timings | others, seconds=timings["block sizes"])


def _search(values: Values, chip: Chip, options: SearchOptions, step: Callable[..., Any]) -> tuple[Graph, Extraction]:
    """The schedules of a kernel. Where results of its products do not fit L0C, its rows go through in panels, as few as fit."""
    from tile_eg.egraph.panels import PANELS, in_panels
    from tile_eg.extract import TooLarge

    whole: TileError | None = None
    for panels in (1, *PANELS):
        parted = in_panels(values, panels) if panels > 1 else values
        if parted is None:
            continue
        graph = step("saturate", _saturated, parted, chip, options)
        try:
            return graph, step("extract", _extracted, graph, chip, options)
        except TooLarge as error:
            whole = whole or error
            if error.level != Level.L0C:
                break
    assert whole is not None
    raise whole


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
    from tile_eg.extract import extract

    name, settings = options.found_by
    return extract(graph, chip, k=options.schedules, extractor=name, settings=settings)


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

    check_arguments(kernel.tensors, arrays)
    with stage("reference", kernel.source):
        return run_kernel(kernel, arrays)


def plan(program: Program, chip: str | None = None) -> Planned:
    """A program that was written or changed by hand, taken as it stands. Its own chip's name holds unless another is given."""
    return Planned(program, _target(chip or program.chip))


def _target(name: str) -> Chip:
    chip = load_chip(name)
    if chip.name in known_chips():
        return chip
    text = f"kernels are not compiled for chip '{name}' ({chip.architecture}) yet"
    raise TileError(text, help=f"compiled for: {', '.join(known_chips())}; 'tile-eg simulate' runs Ascend C for it")


def _plan_all(schedules: Sequence[Schedule], chip: Chip) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
    """The schedules with their plans, and those that cannot be planned or written with the reason; an error where none can.

    A schedule may need more flag ids or wider fields than there are: then the next one is as good as the search knows.
    """
    planned, dropped = _plan_each(schedules, chip)
    if not planned:
        raise dropped[0][1]
    return planned, dropped


def _plan_each(schedules: Sequence[Schedule], chip: Chip) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
    planned: list[tuple[Schedule, Planned]] = []
    dropped: list[tuple[Schedule, Exception]] = []
    for schedule in schedules:
        try:
            planned.append((schedule, plan_schedule(schedule, chip)))
        except Exception as error:
            dropped.append((schedule, error))
    return planned, tuple(dropped)


def plan_schedule(schedule: Schedule, chip: Chip) -> Planned:
    """A schedule with its flags and text; its rings are made shallower where flag ids would run out."""
    from tile_eg.emit import lower as lowering
    from tile_eg.emit.sync import SyncError, synchronise
    from tile_eg.extract.flags import shallower
    from tile_eg.extract.memory import assign

    while True:
        try:
            planned = Planned(synchronise(lowering.plan(schedule, chip)), chip)
        except SyncError:
            if not shallower(schedule):
                raise
            assign(schedule, chip)
        else:
            _ = planned.source
            return planned


def _ranked(planned: Sequence[tuple[Schedule, Planned]], model: RankModel) -> tuple[Candidate, ...]:
    """Fastest first; among equals, the order of the search holds."""
    from tile_eg.cost_models import predicted

    times = predicted(model, [p.program for _, p in planned])
    return _fastest_first([Candidate(s, p, t) for (s, p), t in zip(planned, times, strict=True)])


def _fastest_first(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    return tuple(sorted(candidates, key=lambda c: c.microseconds))
