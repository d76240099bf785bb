"""How the tiles of a kernel go to the cores: its schedules as persistent kernels, in the orders that promise most."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from tile_eg.chips import Chip
from tile_eg.errors import TileError
from tile_eg.ir.machine import MAX_BLOCKS
from tile_eg.lowered import Candidate, Dropped, Lowered, fastest_first, plan_each, ranked
from tile_eg.planned import Planned, stage

if TYPE_CHECKING:
    from tile_eg.cost_models import RankModel
    from tile_eg.extract.schedule import Schedule


def _allowed(schedule: Schedule) -> bool:
    """Whether a rule gives a launch block to each tile, where a schedule has it so."""
    return schedule.grid is not None or any(g.op == "Blocks" for g in schedule.graph.grids)


ORDERS = {"none": 0, "quick": 3, "full": None}
"""In how many orders a persistent kernel's tiles are tried, by the effort; None: in all that there are."""
RIVALS, STRAIGHT, NEAR, OTHERS = 2, 4, 1.15, 1.5
"""Of so many schedules (of more, where they have no loops: such a block overlaps with the next tile's alone), those that take at
most so many times as long as the best are tried as persistent kernels; also of those whose blocks take another number of cores,
where their best takes at most so many times as long as the best of all."""


def with_best_grid(made: Lowered, rank: str) -> Lowered:
    """The kernel, or one of its schedules with launch blocks that go through several tiles, whichever is faster."""
    from tile_eg.cost_models import rank_model

    start, timings = perf_counter(), dict(made.timings)
    with stage("grid", made.kernel.source, timings):
        most = ORDERS[made.search.effort]
        candidates, dropped = _over_tiles(made.candidates, made.chip, rank_model(rank, made.chip), most)
        candidates = tuple(c for c in candidates if _allowed(c.schedule))
        if not candidates:
            raise TileError("no rule says which launch block takes which tile", help="the rule 'block-a-tile' is left out")
        candidates = _launched(candidates)
    program, seconds = candidates[0].planned.program, made.seconds + perf_counter() - start
    return replace(made, program=program, candidates=candidates, dropped=made.dropped + dropped, timings=timings, seconds=seconds)


def _launched(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Those that one launch can start."""
    from tile_eg.emit.host import launch_blocks

    blocks = [launch_blocks(c.planned.program) for c in candidates]
    if min(blocks) > MAX_BLOCKS:
        raise TileError(
            f"a launch has at most {MAX_BLOCKS} blocks, and this kernel would have {min(blocks)}",
            help="larger tiles, or a search that tries blocks which go through several tiles (--effort quick)",
        )
    return tuple(c for c, n in zip(candidates, blocks, strict=True) if n <= MAX_BLOCKS)


def _over_tiles(
    candidates: tuple[Candidate, ...], chip: Chip, model: RankModel, most: int | None
) -> tuple[tuple[Candidate, ...], Dropped]:
    """The candidates, and those near the best with launch blocks that go through several tiles, ranked; and what failed.

    The orders of tiles are tried on the best of these: they share its plan.
    """
    from tile_eg.emit.lower.tasks import reordered
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
            planned, failed = plan_each([s for c in alike for s in with_grids(c.schedule, grids[0], chip)], chip)
            first = with_halves(ranked(planned, model), chip, model)
            others = [replace(first[0].schedule, grid=g) for g in grids[1:]] if first else []
            planned = [(s, Planned(reordered(first[0].planned.program, s), chip)) for s in others]
            made += [*first, *ranked(planned, model)]
            dropped += failed
    return fastest_first((*candidates, *made)), dropped


ALIKE = 1.02
"""Persistent schedules that take at most so many times as long as the best are tried with their product in halves, too."""


def with_halves(first: tuple[Candidate, ...], chip: Chip, model: RankModel) -> tuple[Candidate, ...]:
    """The persistent kernels, and the best of them with results that leave L0C in halves, ranked."""
    from tile_eg.extract.grid import in_halves

    near = (c for c in first if c.microseconds <= ALIKE * first[0].microseconds)
    halved = [s for c in near if c.schedule.persistent and (s := in_halves(c.schedule))]
    return fastest_first((*first, *ranked(plan_each(halved, chip)[0], model)))
