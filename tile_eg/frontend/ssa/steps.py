"""Element types on the way: what a cast goes through, and what an operation is computed in."""

from __future__ import annotations

from tile_eg.ops.types import BF16, E4M3, E5M2, F16, F32, I8, I16, I32, NARROW, SIGNED, U8, WHOLE, DType

DIRECT = {
    F16: (F32, BF16, I8, U8, I16, I32), BF16: (F32, F16), F32: (F16, BF16, I8, U8, I16, I32, E4M3, E5M2), I8: (F16, U8),
    U8: (F16, I8), I16: (F16, F32), I32: (F32, I16), E4M3: (F32,), E5M2: (F32,),
}  # fmt: skip
"""To which types one cast goes: by an instruction (Cast.md of the vendor), or by a rule that makes it of several."""
THROUGH = {BF16: F32, I8: F16, U8: F16, I16: F16, I32: F32, E4M3: F32, E5M2: F32}
"""Where else it goes through: all bytes are numbers of f16."""


def between(of: DType | None, to: DType) -> DType | None:
    """What a cast goes through on its way, None where it is one step. The result is that of one rounding, but of numbers of 32
    bits, which become f32 first. What does not fit saturates at each step."""
    if of is None or SIGNED.get(of) == to or SIGNED.get(to) == of or to in DIRECT.get(of, ()):
        return None
    if of == I32 and to in WHOLE:
        return I16
    if to in NARROW and of in (F16, BF16, I16, I32):
        return F32
    return F32 if of == I16 and to in (BF16, I32) else THROUGH.get(of)


def computing(dtype: DType | None) -> DType:
    """The dtype that the vector unit computes in: it has no bf16 arithmetic, and none of bytes and of f8."""
    return F32 if dtype in (None, BF16, *NARROW) else F16 if dtype in (I8, U8) else dtype  # type: ignore[return-value]


def reducing(name: str, dtype: DType | None) -> DType:
    """The dtype that a reduction is computed in: a sum of f16 would lose a digit with every few terms."""
    return F32 if name == "sum" else computing(dtype)


def promoted(x: DType | None, y: DType | None) -> DType:
    """The dtype of an operation on x and y: equal ones stay, mixed ones become f32."""
    return x if x == y and x is not None else F32
