"""Blocks beyond the cores: each core takes the next block when it has ended one."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace

FIRST = 0.5  # of what the last core loses in step the first one loses: assumed (0: it loses nothing, 1: all end together)


def spread(first: float, alone: float, cores: int) -> list[float]:
    """When the cores end their first blocks, which they began together.

    Cores that read the same lines get them one after the other (machine, clause 32). The last one takes `first`, where it would
    take `alone` without the others; whoever comes before loses less.
    """
    return [alone + (first - alone) * (FIRST + (1 - FIRST) * (i + 1) / cores) for i in range(cores)]


def ended(ends: Sequence[float], lengths: Sequence[float]) -> float:
    """When the last block has ended, where cores are done with their first ones at `ends` and take these in their order."""
    free = list(ends)
    heapify(free)
    for length in lengths:
        heapreplace(free, free[0] + length)
    return max(free)


def in_waves(blocks: int, cores: int, first: float, later: float, last: float) -> float:
    """When the last of `blocks` has ended. Those beyond the first `cores` take `later`, those of the last wave `last`.

    Whole rounds of all cores need not be gone through: they shift every end alike.
    """
    ends = spread(first, min(first, later), cores)
    more = blocks - cores
    tail = (more - 1) % cores + 1
    rounds, shift = (more - tail) // cores, 0.0
    if first - later <= later:
        shift, rounds = rounds * later, 0
    return shift + ended(ends, [later] * (rounds * cores) + [last] * tail)
