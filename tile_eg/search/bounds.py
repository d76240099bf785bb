"""Optimistic bounds: microseconds that no schedule which a move makes of a candidate can beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_eg.chips import Chip
from tile_eg.errors import PlanError, TileError, attempted, plannable
from tile_eg.search.candidates import Candidate

if TYPE_CHECKING:
    from tile_eg.extract.schedule import Schedule
    from tile_eg.ir.program import Program
    from tile_eg.search.planned import Planned
    from tile_eg.timeline.result import Timeline

LOADS = "MTE2"


def timing(candidate: Candidate) -> Timeline:
    """The candidate's timeline, without its spans and handovers: what the search compares, found once for equal programs."""
    from tile_eg.timeline import engine

    return engine.run(candidate.planned.program, candidate.planned.chip, record=False)


def floor(candidate: Candidate, chip: Chip) -> float:
    """What a candidate's busiest pipe takes for all tiles of a core, and the launch.

    Loads do not count: tiles may share them, L2 or a packed copy may serve them.

    Where tiles differ in their work only the launch counts: the timeline knows the slowest of them. In the microseconds of the
    rank model: the timeline's share of them.
    """
    from tile_eg.timeline.works import blocks_at_once, started

    time, program = timing(candidate), candidate.planned.program
    at_once = min(program.blocks, blocks_at_once(program, chip))
    busy = max((n for (_, pipe), n in time.busy.items() if pipe != LOADS), default=0.0)
    launch = chip.launch_us(started(program, at_once), program.kernel_type.startswith("MIX"))
    uneven = bool(candidate.schedule.graph.values.counts)
    least = launch + (0.0 if uneven else chip.microseconds(busy * program.blocks / at_once))
    return candidate.microseconds * min(1.0, least / time.microseconds)


def unhindered(schedule: Schedule, chip: Chip, like: Candidate) -> float:
    """What a schedule takes at the least, as its instructions are known before its flags, which cost the most to find.

    Its loads count: they are what they are in its own order of tiles. In the microseconds of the rank model, as they are to
    the timeline's for `like`. 0 where there is no program: what plans it says why.
    """
    from tile_eg.emit import lower

    program = plannable(lambda: attempted(lambda: lower.plan(schedule, chip)))
    if isinstance(program, TileError | PlanError):
        return 0.0
    return _bound(program, chip, like)


def bound_of(planned: Planned, like: Candidate) -> float:
    """What a plan takes at the least in the microseconds of the rank model, as they are to the timeline's for `like`."""
    return _bound(planned.program, planned.chip, like)


def _bound(program: Program, chip: Chip, like: Candidate) -> float:
    from tile_eg.timeline.engine import least

    return least(program, chip) * like.microseconds / timing(like).microseconds
