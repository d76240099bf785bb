"""Element types and memory levels, in the names that kernel authors use."""

from __future__ import annotations

from enum import StrEnum
from struct import pack
from typing import Any

from tile_eg.ops.records import record


@record
class DType:
    """An element type: `bits` per element, its `.tile` name, its Ascend C spelling and its NumPy name.

    Elements that `scale` others lie by twos, and are loaded and waited for along with those.
    """

    name: str
    bits: int
    ascend: str
    numpy: str
    scale: bool = False

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def together(self) -> int:
        """How many elements share a byte."""
        return max(1, 8 // self.bits)

    @property
    def whole(self) -> bool:
        """Whether its elements are whole numbers."""
        return "int" in self.numpy

    def __str__(self) -> str:
        return self.name


F16 = DType("f16", 16, "half", "float16")
BF16 = DType("bf16", 16, "bfloat16_t", "bfloat16")
F32 = DType("f32", 32, "float", "float32")
I8 = DType("i8", 8, "int8_t", "int8")
U8 = DType("u8", 8, "uint8_t", "uint8")
I16 = DType("i16", 16, "int16_t", "int16")
U16 = DType("u16", 16, "uint16_t", "uint16")
I32 = DType("i32", 32, "int32_t", "int32")
U32 = DType("u32", 32, "uint32_t", "uint32")
I4 = DType("i4", 4, "int4b_t", "int4")
E4M3 = DType("f8e4m3", 8, "fp8_e4m3fn_t", "float8_e4m3fn")
E5M2 = DType("f8e5m2", 8, "fp8_e5m2_t", "float8_e5m2")
E2M1 = DType("f4e2m1", 4, "fp4x2_e2m1_t", "float4_e2m1fn")
E1M2 = DType("f4e1m2", 4, "fp4x2_e1m2_t", "uint8")
E8M0 = DType("e8m0", 8, "fp8_e8m0_t", "float8_e8m0fnu", scale=True)

FLOATS = (F16, BF16, F32)
WHOLE = (I8, U8, I16, U16, I32, U32)
INDICES = (I8, U8, I16, U16, I32)
"""Of what the scalar unit makes indices."""
NARROW = (E4M3, E5M2)
"""Floats of 8 bits: they are kept, moved, multiplied by the cube core, and cast from and to f32."""
PACKED = (E2M1, E1M2)
"""Floats of 4 bits, two in a byte, the even one in its lower half: operands of products with scales. NumPy has none of `E1M2`."""
HALVES = (I4, *PACKED)
"""Numbers of which two share a byte: memories hold them as bytes (`frontend/nibbles.py`)."""
SCALED = {d: DType(f"mx{d.name}", d.bits, d.ascend, "float64") for d in (*NARROW, *PACKED)}
"""What the operands of a product with scales hold, by what they are stored as: floats of which each `SCALE_BLOCK` along the
depth of the product share a scale, a power of two (`E8M0`). No memory holds such a number as one."""


def packed_in(dtype: DType) -> DType | None:
    """The floats of 4 bits that scaled operands of this type hold, two in a byte; None for those of 8 bits."""
    return next((d for d in PACKED if SCALED[d] == dtype), None)


SCALE_BLOCK = 32
SCALED_DEPTH = 64
"""A product with scales goes along its depth in steps of so many (MmadMx: K is a multiple of 64)."""
EXACT = 1 << 24
"""Up to which f32 holds every whole number."""

DTYPES = {d.name: d for d in (*FLOATS, *WHOLE, *NARROW, E8M0)}
"""What memories hold. Numbers of 4 bits (`HALVES`) lie two in a byte, and are bytes behind the frontends."""
VALUE_TYPES = DTYPES | {d.name: d for d in SCALED.values()}
"""What values are of."""
SIGNED = {U8: I8, U16: I16, U32: I32}
"""The element types without a sign, and those with one that have the same bits."""
ALIASES = {
    "float16": F16, "half": F16, "fp16": F16, "bfloat16": BF16, "float32": F32, "float": F32, "fp32": F32,
    "int8": I8, "uint8": U8, "int16": I16, "uint16": U16, "int32": I32, "uint32": U32, "int": I32,
    "float8_e4m3": E4M3, "float8_e4m3fn": E4M3, "e4m3_float8": E4M3, "fp8_e4m3": E4M3, "fp8_e4m3fn": E4M3, "e4m3": E4M3,
    "float8_e5m2": E5M2, "e5m2_float8": E5M2, "fp8_e5m2": E5M2, "e5m2": E5M2,
    "float8_e8m0fnu": E8M0, "float8_e8m0": E8M0, "e8m0_float8": E8M0, "fp8_e8m0": E8M0,
    "float4_e2m1fn": E2M1, "float4_e2m1": E2M1, "e2m1_float4": E2M1, "fp4_e2m1": E2M1, "fp4x2_e2m1": E2M1, "e2m1": E2M1,
    "float4_e1m2": E1M2, "e1m2_float4": E1M2, "fp4_e1m2": E1M2, "fp4x2_e1m2": E1M2, "e1m2": E1M2,
}  # fmt: skip


def dtype_of(name: str) -> DType | None:
    """The element type called `name` in `.tile` text or in TileLang's spelling, or None."""
    if name in ("i4", "int4", "int4b_t"):
        return I4
    return {d.name: d for d in PACKED}.get(name) or DTYPES.get(name) or ALIASES.get(name) or ALIASES.get(name.removesuffix("_t"))


def spelled(dtype: Any) -> str:
    """How an author's dtype is written: a name, what a class of NumPy's (`np.float16`) is called, or one of torch's."""
    own = isinstance(dtype, type) and dtype.__module__ != "builtins"
    return dtype.__name__ if own else str(dtype).removeprefix("torch.")


def holds_all(wide: DType, of: DType | None) -> bool:
    """Whether a type of whole numbers holds all numbers of another one."""
    signs = of is not None and (of not in SIGNED) <= (wide not in SIGNED)
    return of is not None and wide.whole and of.whole and signs and of.bits + (of in SIGNED and wide not in SIGNED) <= wide.bits


def has_room(dtype: DType, value: float) -> bool:
    """Whether a number does not run over in a type; no finite one may become infinite in f16, bf16 or f32."""
    if dtype.whole:
        least, most = (0, 2**dtype.bits) if dtype in SIGNED else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1))
        return least <= value < most
    try:
        pack("<e" if dtype is F16 else "<f", value)
    except OverflowError:
        return False
    return True


def fractal_depth(dtype: DType) -> int:
    """Elements in 32 bytes: those of a row of a fractal in L1, L0A and L0B."""
    return 32 // dtype.bytes * dtype.together


class Level(StrEnum):
    """A memory level. WS is the workspace: a part of GM through which cube and vector cores meet."""

    GM = "GM"
    WS = "WS"
    L1 = "L1"
    L0A = "L0A"
    L0B = "L0B"
    L0C = "L0C"
    UB = "UB"
