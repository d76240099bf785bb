"""Which casts between element types one instruction does (Cast.md of the vendor)."""

from __future__ import annotations

from tile_eg.ops.types import BF16, E4M3, E5M2, F16, F32, I8, I16, I32, U8, DType

ROUND = {
    (F32, F16): "CAST_RINT", (F32, BF16): "CAST_RINT", (F16, F32): "CAST_NONE", (BF16, F32): "CAST_NONE",
    (I32, F32): "CAST_RINT", (I8, F16): "CAST_NONE", (F32, I32): "CAST_RINT", (F16, I8): "CAST_RINT",
    (U8, F16): "CAST_NONE", (F16, U8): "CAST_RINT", (F32, I16): "CAST_RINT", (F16, I16): "CAST_RINT", (F16, I32): "CAST_RINT",
    (I16, F16): "CAST_RINT", (I32, F16): "CAST_NONE", (I16, F32): "CAST_NONE", (I32, I16): "CAST_NONE",
    (E4M3, F32): "CAST_NONE", (E5M2, F32): "CAST_NONE", (F32, E4M3): "CAST_RINT", (F32, E5M2): "CAST_RINT",
}  # fmt: skip
"""Casts, with their rounding modes."""


def is_direct(of: DType, to: DType) -> bool:
    """Whether one instruction casts, copies, or sees the same bits; i32 to f16 takes a scale with it."""
    alike = of.whole and to.whole and of.bits == to.bits
    return of == to or alike or (of, to) in ROUND
