"""Long sums of few tiles in parts: the quick estimate of a kernel whose launch then has two phases."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.chips import Chip
from tile_eg.ir.machine import SYNC_ALL_HANDOVERS
from tile_eg.ir.values import Values
from tile_eg.sizing.estimate import Estimate, estimate
from tile_eg.transforms.split_k import COUNTS, PANELS, Parts, divisible, in_parts

TRIED = 2


def with_parts(values: Values, chip: Chip) -> Estimate:
    """The estimate of a kernel; of the better form, where its sums may be done in parts (`parts`: how many)."""
    whole = estimate(values, chip)
    if not whole.cube or values.blocks >= 2 * chip.cube_cores:
        return whole
    turns = {n: -(-values.blocks * n // chip.cube_cores) / n for n in (1, *COUNTS)}
    meeting = SYNC_ALL_HANDOVERS * chip.sync.cross_latency
    shorter = [n for n in COUNTS if whole.cycles * turns[n] / turns[1] + meeting + chip.least_ub_pass < whole.cycles]
    trips = divisible(values) if shorter else None
    forms = sorted((n for n in shorter if trips and trips % n == 0), key=lambda n: (turns[n], n))[:TRIED]
    times = {n: best_parts(values, n, chip)[1] + meeting for n in forms}
    best = min(times, key=lambda n: times[n], default=1)
    return replace(whole, cycles=times[best], parts=best) if best > 1 and times[best] < whole.cycles else whole


def best_parts(values: Values, count: int, chip: Chip) -> tuple[Parts, float]:
    """The kernel with its sums in `count` parts and the panels of the second phase that take least; cycles of both phases.

    Cores that the first phase started are there for the second.
    """
    forms = [in_parts(values, count, n) for n in PANELS if values.blocks * n <= chip.vector_cores]
    first = estimate(forms[0].first, chip)
    cycles = []
    for parts in forms:
        second = estimate(parts.second, chip)
        cycles.append(first.cycles + second.cycles - min(first.launch, second.launch))
    best = min(range(len(forms)), key=cycles.__getitem__)
    return forms[best], cycles[best]
