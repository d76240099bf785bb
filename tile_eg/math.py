"""TileLang's `math`: sizes of blocks."""

from __future__ import annotations


def next_power_of_2(x: int) -> int:
    """The least power of two that is not below `x`, which is at least 1."""
    return 1 << (x - 1).bit_length()


def cdiv(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)
