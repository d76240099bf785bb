"""Which element types the vector instructions take, and how they see the others."""

from __future__ import annotations

from tile_eg.ops import elementwise
from tile_eg.ops.types import BF16, F16, F32, I8, I16, I32, SIGNED, U8, DType

TYPES = {
    **{op.name: op.types for op in elementwise.UNARY.values()},
    **{op.name: op.types for op in elementwise.BINARY.values() if op.native},
    **{f"{op.name}s": op.types for op in elementwise.BINARY.values() if op.with_scalar},
}
BY_BITS = ("And", "Or", "Not")
"""Instructions on 16 bits at a time, of any element type."""
ROUND = {
    (F32, F16): "CAST_RINT", (F32, BF16): "CAST_RINT", (F16, F32): "CAST_NONE", (BF16, F32): "CAST_NONE",
    (I32, F32): "CAST_RINT", (I8, F16): "CAST_NONE", (F32, I32): "CAST_RINT", (F16, I8): "CAST_RINT",
    (U8, F16): "CAST_NONE", (F16, U8): "CAST_RINT", (F32, I16): "CAST_RINT", (F16, I16): "CAST_RINT", (F16, I32): "CAST_RINT",
    (I16, F16): "CAST_RINT", (I32, F16): "CAST_NONE", (I16, F32): "CAST_NONE", (I32, I16): "CAST_NONE",
}  # fmt: skip
"""Casts, with their rounding modes."""


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
