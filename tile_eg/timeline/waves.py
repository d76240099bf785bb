"""Blocks beyond the cores: each core takes the next block when it has ended one."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace


def spread(first: float, alone: float, cores: int, first_lost: float) -> list[float]:
    """When the cores end their first blocks, which they began together.

    Cores that read the same lines get them one after the other (machine, clause 32). The last one takes `first`, where it would
    take `alone` without the others; whoever comes before loses less, the first one `first_lost` of it.
    """
    return [alone + (first - alone) * (first_lost + (1 - first_lost) * (i + 1) / cores) for i in range(cores)]


def ended(ends: Sequence[float], lengths: Sequence[float]) -> float:
    """When the last block has ended, where cores are done with their first ones at `ends` and take these in their order."""
    free = list(ends)
    heapify(free)
    for length in lengths:
        heapreplace(free, free[0] + length)
    return max(free)


def in_waves(blocks: int, cores: int, lengths: tuple[float, float, float], first_lost: float) -> float:
    """When the last of `blocks` has ended. `lengths` are those of a block of the first wave, of a later one, and of the last.

    Whole rounds of all cores need not be gone through: they shift every end alike.
    """
    first, later, last = lengths
    ends = spread(first, min(first, later), cores, first_lost)
    more = blocks - cores
    tail = (more - 1) % cores + 1
    rounds, shift = (more - tail) // cores, 0.0
    if first - later <= later:
        shift, rounds = rounds * later, 0
    return shift + ended(ends, [later] * (rounds * cores) + [last] * tail)
