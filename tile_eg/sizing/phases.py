"""Long sums of few tiles in parts: the quick estimate of a kernel whose launch then has two phases."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.chips import Chip
from tile_eg.ir.machine import SECOND_PHASE_CYCLES, SYNC_ALL_HANDOVERS
from tile_eg.ir.values import Values
from tile_eg.sizing.estimate import Estimate, estimate
from tile_eg.transforms.split_k import COUNTS, divisible, in_parts

TRIED = 2


def with_parts(values: Values, chip: Chip) -> Estimate:
    """The estimate of a kernel; of the better form, where its sums may be done in parts (`parts`: how many)."""
    whole = estimate(values, chip)
    if not whole.cube or values.blocks >= 2 * chip.cube_cores:
        return whole
    turns = {n: -(-values.blocks * n // chip.cube_cores) / n for n in (1, *COUNTS)}
    meeting = SYNC_ALL_HANDOVERS * chip.sync.cross_latency
    shorter = [n for n in COUNTS if whole.cycles * turns[n] / turns[1] + meeting + SECOND_PHASE_CYCLES < whole.cycles]
    trips = divisible(values) if shorter else None
    forms = sorted((n for n in shorter if trips and trips % n == 0), key=lambda n: (turns[n], n))[:TRIED]
    times = {n: _cycles(values, n, chip) + meeting for n in forms}
    best = min(times, key=lambda n: times[n], default=1)
    return replace(whole, cycles=times[best], parts=best) if best > 1 and times[best] < whole.cycles else whole


def _cycles(values: Values, count: int, chip: Chip) -> float:
    """Cycles of both phases."""
    parts = in_parts(values, count, chip.vector_cores)
    return estimate(parts.first, chip).cycles + max(SECOND_PHASE_CYCLES, estimate(parts.second, chip).cycles)
