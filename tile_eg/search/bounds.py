"""Optimistic bounds: microseconds that no schedule which a move makes of a candidate can beat."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.search.candidates import Candidate

LOADS = "MTE2"


def floor(candidate: Candidate, chip: Chip) -> float:
    """What a candidate's busiest pipe takes for all tiles of a core, and the launch.

    Loads do not count: tiles may share them, L2 or a packed copy may serve them.

    Where tiles differ in their work only the launch counts: the timeline knows the slowest of them. In the microseconds of the
    rank model: the timeline's share of them.
    """
    from tile_eg.timeline.works import blocks_at_once, started

    time, program = candidate.planned.timing, candidate.planned.program
    at_once = min(program.blocks, blocks_at_once(program, chip))
    busy = max((n for (_, pipe), n in time.busy.items() if pipe != LOADS), default=0.0)
    launch = chip.launch_us(started(program, at_once), program.kernel_type.startswith("MIX"))
    uneven = bool(candidate.schedule.graph.values.counts)
    least = launch + (0.0 if uneven else chip.microseconds(busy * program.blocks / at_once))
    return candidate.microseconds * min(1.0, least / time.microseconds)
