"""Vector clocks as one whole number each: a field of 24 bits a counter, its top bit left free for comparing.

All fields are compared and the greater ones taken in a few operations on long integers, much faster than one counter after the
other. No counter exceeds the steps of a trace (`sync_trace.MAX_TRACE`), which is far below 2^23.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

Clock = int
BITS = 24
MOST = (1 << BITS - 1) - 1


@lru_cache(maxsize=64)
def guards(size: int) -> int:
    """The free bit of each of so many counters."""
    return sum(1 << BITS * n + BITS - 1 for n in range(size))


def count(clock: Clock, at: int) -> int:
    """The counter at a place."""
    return clock >> BITS * at & MOST


def merged(a: Clock, b: Clock, guard: int) -> Clock:
    """The greater of each pair of counters. `guard` has their free bits."""
    if a == b:
        return a
    least = ((a | guard) - b) & guard  # the free bit stays where a's counter is not the smaller
    return b ^ ((a ^ b) & (least - (least >> BITS - 1)))


def of_counts(counts: Iterable[tuple[int, int]]) -> Clock:
    """The clock that has these counters, each by its place; the others are 0."""
    return sum(n << BITS * at for at, n in counts)


def reached(clock: Clock, least: Clock, guard: int) -> bool:
    """Whether no counter of a clock is smaller than the one of the `least`."""
    return ((clock | guard) - least) & guard == guard
