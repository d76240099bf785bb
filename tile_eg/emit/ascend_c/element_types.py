"""Which element types the vector instructions take, and how they see the others."""

from __future__ import annotations

from tile_eg.ops import elementwise
from tile_eg.ops.types import SIGNED, DType

TYPES = {
    **{op.name: op.types for op in elementwise.UNARY.values()},
    **{op.name: op.types for op in elementwise.BINARY.values() if op.native},
    **{f"{op.name}s": op.types for op in elementwise.BINARY.values() if op.with_scalar},
}
BY_BITS = ("And", "Or", "Not")
"""Instructions on 16 bits at a time, of any element type."""


def without_sign(dtype: DType) -> DType:
    """The element type without a sign that has the same bits."""
    return next((u for u, signed in SIGNED.items() if signed == dtype), dtype)


def seen(dtype: DType, bits: bool) -> tuple[str, int]:
    """How an instruction sees a tensor: what stands behind it, and how many elements it then has for each one.

    `bits`: it takes 16 bits at a time. Others compute with whole numbers without a sign as with those that have one.
    """
    if bits:
        return (".ReinterpretCast<uint16_t>()", dtype.bytes // 2) if dtype.bytes == 4 else ("", 1)
    return (f".ReinterpretCast<{SIGNED[dtype].ascend}>()", 1) if dtype in SIGNED else ("", 1)


def times(count: str, n: int) -> str:
    """So many elements, n to each."""
    if n == 1:
        return count
    return str(int(count) * n) if count.isdigit() else f"{n} * ({count})"
