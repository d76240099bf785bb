"""The one place that sees the whole way from a kernel to Ascend C, and drives it; the rooms it calls know their part only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP, Chip, known_chips, load_chip
from tile_eg.errors import TileError
from tile_eg.grids import with_best_grid
from tile_eg.ir.arrays import check_arguments
from tile_eg.ir.kernel import Kernel, Note, added_to
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.sharing import sharing
from tile_eg.ir.types import Level
from tile_eg.lowered import Candidate, Lowered, extracted, plan_all, ranked
from tile_eg.phases import PARTS, in_phases, with_parts
from tile_eg.planned import InternalError, Planned, Run, compiled_for, plan, plan_schedule, rare_collections, stage
from tile_eg.rules import registry, selected
from tile_eg.search import SearchOptions, search_options

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.egraph import Graph
    from tile_eg.extract.base import Extraction
    from tile_eg.frontend.text import Template
    from tile_eg.ir.reference_bounds import Expected
    from tile_eg.ir.values import Values


__all__ = [
    "Candidate", "InternalError", "Lowered", "Planned", "Run", "check_kernel", "expected", "lower", "meaning", "plan",
    "plan_schedule", "stage",
]  # fmt: skip


@rare_collections()
@sharing()
def lower(kernel: Kernel | Template, chip: str = DEFAULT_CHIP, *, search: SearchOptions | None = None) -> Lowered:
    """Compiles a kernel for a chip. TileError is the user's to mend, with its place; InternalError is ours.

    The search, as its options say, keeps a few schedules; a rank model decides among them once they are planned. Block sizes
    that are left open are found first: the few that look best go the whole way. A template has its own sizes, where it has all.
    """
    from tile_eg.cost_models import roles

    kernel = _at_its_sizes(kernel)

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

    best = in_phases(with_best_grid(made, rank), rank)
    form = crowded(to_values(made.kernel), made.chip, not made.search.exact_math) if made.search.effort != "none" else None
    if form is None:
        return best
    try:
        other = with_best_grid(_block_by_block(made.kernel, made.chip.name, rank, made.search, form), rank)
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
        from tile_eg.frontend.notes import notes
        from tile_eg.frontend.ssa import to_values

        target = compiled_for(chip)
        model = rank_model(rank, target)

    def step(name: str, do: Callable[..., Any], *arguments: Any) -> Any:
        with stage(name, kernel.source, timings):
            return do(*arguments)

    step("check", _check_room, kernel, target)
    step("check", check, kernel)
    values = step("values", to_values, kernel)
    graph, extraction = _search(values, target, options, step, form)
    given = extraction.extractor == "choices"
    planned, dropped = step("plan", plan_all, (extraction.best, *extraction.alternatives), target, given)
    candidates = step("rank", ranked, planned, model)
    program = candidates[0].planned.program
    seconds = perf_counter() - start
    search = extraction, candidates, dropped, graph.phases, timings, seconds, options
    return Lowered(program, target, kernel, *search, told=notes(kernel))


def _sized(kernel: OpenKernel, chip: str, rank: str, options: SearchOptions) -> Lowered:
    """The kernel at the best of the block sizes that were tried."""
    from tile_eg.frontend.ssa import to_values
    from tile_eg.sizing.choose import Stages, choose

    check_kernel(kernel, chip)
    time = lambda made: made.candidates[0].microseconds  # noqa: E731
    may_part = PARTS[options.effort] != 0 and "split-depth" in registry(options.theories)
    part = (lambda made: with_parts(made, rank)) if may_part else None
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


def _search(
    values: Values, chip: Chip, options: SearchOptions, step: Callable[..., Any], given: Values | None
) -> tuple[Graph, Extraction]:
    """The schedules of a kernel, or of a given form of it; where tiles do not fit together, of the first form where they do."""
    from tile_eg.egraph.columns import part_of
    from tile_eg.extract import TooLarge

    def searched(form: Values) -> tuple[Graph, Extraction]:
        graph = step("saturate", _saturated, form, chip, options)
        graph.forms |= {loop: (part_of(name),) for loop, name in form.variables.items() if loop not in values.variables}
        return graph, step("extract", extracted, graph, chip, options)

    try:
        return searched(given or values)
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


def _check_room(kernel: Kernel, chip: Chip) -> None:
    """TileError where the tensors do not fit the chip's HBM; only that reads the tables of the other chips."""
    from tile_eg.frontend.room import bytes_of, check_room

    if sum(map(bytes_of, kernel.tensors)) > chip.hbm_bytes:
        chips = map(load_chip, known_chips(None))
        check_room(kernel, chip.name, {c.name: c.hbm_bytes for c in chips})


def _at_its_sizes(kernel: Any) -> Kernel:
    """A kernel as it is, a template with its own sizes. TileError for anything else, and where a size has no value."""
    from tile_eg.frontend.text import Template

    if isinstance(kernel, Template):
        return kernel.instantiate({})
    if not isinstance(kernel, Kernel):
        help = "load_text(...).instantiate(sizes) gives one; what tile_eg.load and tile_eg.jit give is compiled by .compile()"
        raise TileError(f"a kernel is compiled here, not a value of type {type(kernel).__name__}", help=help)
    return kernel


def check_kernel(kernel: Kernel | Template, chip: str = DEFAULT_CHIP) -> tuple[Note, ...]:
    """TileError unless names, types, shapes and bounds fit, every read follows a write, and every loop is a fold; and unless the
    tensors fit the chip's HBM.

    Gives the notes on the kernel: what is right, and may not be what its author had in mind.
    """
    from tile_eg.frontend.check import check
    from tile_eg.frontend.notes import notes
    from tile_eg.frontend.ssa import to_values

    kernel = _at_its_sizes(kernel)
    with stage("check", kernel.source):
        _check_room(kernel, compiled_for(chip))
        check(kernel)
        to_values(kernel)
        return notes(kernel)


def meaning(kernel: Kernel | Template, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the kernel's outputs are by its own sequential meaning, computed in NumPy; arrays as in `Planned.run`."""
    from tile_eg.ir.reference import run_kernel

    kernel = _at_its_sizes(kernel)
    check_arguments(kernel.tensors, arrays, added_to(kernel))
    with stage("reference", kernel.source):
        return run_kernel(kernel, arrays)


def expected(kernel: Kernel, arrays: Mapping[str, np.ndarray]) -> dict[str, Expected]:
    """`meaning`, and how far each element may be from it: what `tile_eg.report.compare.compare` compares a run with."""
    from tile_eg.ir.reference_bounds import run_with_bounds

    check_arguments(kernel.tensors, arrays, added_to(kernel))
    with stage("reference", kernel.source):
        return run_with_bounds(kernel, arrays)
