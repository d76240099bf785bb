"""Launches of two phases, all cores of which meet between: sums in parts, and operands that are copied first."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from tile_eg.errors import TileError
from tile_eg.grids import with_halves
from tile_eg.lowered import Candidate, Dropped, Lowered, extracted, fastest_first, plan_each, ranked
from tile_eg.planned import Planned, stage

if TYPE_CHECKING:
    from tile_eg.cost_models import RankModel
    from tile_eg.egraph import Node
    from tile_eg.extract.schedule import Schedule
    from tile_eg.ir.values import Values


PARTS = {"none": 0, "quick": 2, "full": None}
"""How many ways to part a long sum are tried, by the effort; None: all that promise a gain."""


def in_phases(made: Lowered, rank: str) -> Lowered:
    """The kernel, or one whose launch has two phases with a meeting of all cores between, whichever is faster."""
    return _in_strips(with_parts(made, rank), rank)


def with_parts(made: Lowered, rank: str) -> Lowered:
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
    found = fastest_first((*made.candidates, *(c for candidates, _ in tried for c in candidates)))
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
    return ranked([(schedule, planned)], model), dropped


def _added_up(node: Node, made: Lowered, model: RankModel) -> tuple[tuple[Candidate, ...], Dropped]:
    """A kernel whose blocks add up parts of its sums in GM: its schedules that can do so, ranked; and what failed."""
    from tile_eg.egraph.parts import added
    from tile_eg.frontend.ssa import to_values

    schedules = _schedules(added(to_values(made.kernel), node.payload[0]), made)
    for s in schedules:
        s.graph.grids = made.extraction.best.graph.grids
    planned, dropped = plan_each([replace(s, parts=node) for s in schedules], made.chip)
    return ranked(planned, model)[:1], dropped


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
    found = fastest_first((*made.candidates, *(c for candidates, _ in tried for c in candidates)))
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
    planned, dropped = plan_each([with_grid(s, grid, made.chip) for s in _schedules(values, made)], made.chip)
    found = with_halves(ranked(planned, model), made.chip, model)
    if not found:
        return (), dropped
    schedules = []
    for n in tiles_beside(first.planned.program, values, made.chip):
        second = replace(found[0].schedule, tiles=(n, values.blocks - n))
        schedules.append(replace(first.schedule, parts=node, second=second, tiles=(0, n)))
    launches, failed = plan_each(schedules, made.chip)
    return ranked(launches, model), (*dropped, *failed)


def _schedules(values: Values, made: Lowered) -> list[Schedule]:
    """The schedules that the search keeps for a phase; none where there are none."""
    from tile_eg.egraph import saturate

    try:
        options = made.search
        return extracted(saturate(values, made.chip, options.budget, options.theories), made.chip, options).schedules
    except TileError:
        return []


def _phase(values: Values, made: Lowered, model: RankModel) -> tuple[tuple[Candidate, ...], Dropped]:
    """One phase of a launch, ranked: its blocks all run at a time."""
    from tile_eg.extract.grid import orders, with_grid
    from tile_eg.timeline.works import blocks_at_once

    planned, dropped = plan_each(_schedules(values, made), made.chip)
    cores = [blocks_at_once(p.program, made.chip) for _, p in planned]
    over = [(s, n) for (s, p), n in zip(planned, cores, strict=True) if p.program.blocks > n]
    if over:
        over_tiles = [with_grid(s, g, made.chip) for s, n in over for g in orders(s, made.chip, n, 1)]
        planned, dropped = plan_each(over_tiles, made.chip)
    return ranked(planned, model), dropped
