"""TileLang's `math`: sizes of blocks."""

from __future__ import annotations


def next_power_of_2(x: int) -> int:
    """The least power of two that is at least `x` (1 or more)."""
    return 1 << (x - 1).bit_length()


def cdiv(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)
