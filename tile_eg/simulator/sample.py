"""Which blocks of a launch a sampled run takes: the corners of the grid first, then others spread evenly over the rest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod


def sampled(number: int, grid: Sequence[int]) -> tuple[int, ...]:
    """The numbers of `number` blocks of a grid, whose first dimension varies fastest; all of them where it has no more."""
    total = prod(grid)
    if number >= total:
        return tuple(range(total))
    chosen = dict.fromkeys(_corners(grid)[:number])
    others = [b for b in range(total) if b not in chosen]
    missing = number - len(chosen)
    return tuple(sorted([*chosen, *(others[(2 * i + 1) * len(others) // (2 * missing)] for i in range(missing))]))


def _corners(grid: Sequence[int]) -> list[int]:
    """The blocks that are first or last in each dimension, each once: the first of all, the last of all, and the others."""
    ends = product(*((0, extent - 1) for extent in reversed(grid)))
    numbers = sorted({_number(tuple(reversed(at)), grid) for at in ends})
    return [numbers[0], numbers[-1], *numbers[1:-1]] if len(numbers) > 1 else numbers


def _number(at: Sequence[int], grid: Sequence[int]) -> int:
    return sum(place * prod(grid[:i]) for i, place in enumerate(at))
