"""Which element types the vector instructions take, and how they see the others."""

from __future__ import annotations

from fractions import Fraction

from tile_eg.emit.ascend_c.index import EmitError, Scope
from tile_eg.ir.program import Instr, Tile
from tile_eg.ops import elementwise
from tile_eg.ops.types import BF16, F16, F32, I8, I16, I32, SIGNED, U8, DType

TYPES = {
    **{op.name: op.types for op in elementwise.UNARY.values()},
    **{op.name: op.types for op in elementwise.BINARY.values() if op.native},
    **{f"{op.name}s": op.types for op in elementwise.BINARY.values() if op.with_scalar},
}
BY_BITS = ("And", "Or", "Not")
"""Instructions on 16 bits at a time, of any element type."""
BITWISE = {
    *(op.name for op in elementwise.UNARY.values() if op.native in BY_BITS),
    *(op.name for op in elementwise.BINARY.values() if op.native in BY_BITS),
}
"""The operations that have one of these."""
WHOLE = Fraction(1)
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


def seen(dtype: DType, bits: bool) -> tuple[str, Fraction]:
    """How an instruction sees a tensor: what stands behind it, and how many elements it then has for each one.

    `bits`: it takes 16 bits at a time; of single bytes there are half as many. Others compute with whole numbers without a sign
    as with those that have one.
    """
    if bits:
        return ("", WHOLE) if dtype.bytes == 2 else (".ReinterpretCast<uint16_t>()", Fraction(dtype.bytes, 2))
    return (f".ReinterpretCast<{SIGNED[dtype].ascend}>()" if dtype in SIGNED else "", WHOLE)


def times(count: str, n: Fraction) -> str:
    """So many elements, n to each; a half only of an even number that is known."""
    if n == 1:
        return count
    return str(int(count) * n) if count.isdigit() else f"{n} * ({count})"


def checked(s: Scope, i: Instr, tiles: list[Tile]) -> None:
    """EmitError where the instruction does not take an operand's element type."""
    known = TYPES.get(i.op[1:].partition("_")[0], (F16, F32))
    if i.op[1:] in BITWISE and all(s.buffer(t).dtype.bytes == 1 for t in tiles):
        if i.form == "flat" and i.rows.value and i.cols.value and i.rows.value * i.cols.value % 2 == 0:
            return
        raise EmitError(f"{i.op} works on 16 bits at a time: an even number of bytes that lie in one run", i.span)
    if any(s.buffer(t).dtype not in known for t in tiles):
        raise EmitError(f"{i.op} works on {' and '.join(map(str, known))} only", i.span)
