"""Blocks that stand for all of a launch."""

from __future__ import annotations

GOLDEN = (5**0.5 - 1) / 2


def spread(total: int, most: int) -> list[int]:
    """Up to `most` numbers below `total`, in order: all, or some that lie evenly and fall in with no period of a grid.

    Every so-many-th block of a grid of 128 x 32 would be one in the same few rows. Multiples of the golden ratio lie evenly
    whatever they are counted by.
    """
    if total <= most:
        return list(range(total))
    return sorted({int(i * GOLDEN % 1 * total) for i in range(most)})
