"""Element types and memory levels, in the names that kernel authors use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class DType:
    """An element type: `bits` per element, its `.tile` name, its Ascend C spelling and its NumPy name."""

    name: str
    bits: int
    ascend: str
    numpy: str

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

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

FLOATS = (F16, BF16, F32)
WHOLE = (I8, U8, I16, U16, I32, U32)
NARROW = (E4M3, E5M2)
"""Floats of 8 bits: they are kept, moved, multiplied by the cube core, and cast from and to f32."""
EXACT = 1 << 24
"""Up to which f32 holds every whole number."""

DTYPES = {d.name: d for d in (*FLOATS, *WHOLE, *NARROW)}
"""What memories hold. Numbers of 4 bits (`I4`) lie two in a byte, and are bytes behind the frontends."""
SIGNED = {U8: I8, U16: I16, U32: I32}
"""The element types without a sign, and those with one that have the same bits."""
ALIASES = {
    "float16": F16, "half": F16, "fp16": F16, "bfloat16": BF16, "float32": F32, "float": F32, "fp32": F32,
    "int8": I8, "uint8": U8, "int16": I16, "uint16": U16, "int32": I32, "uint32": U32, "int": I32,
    "float8_e4m3": E4M3, "float8_e4m3fn": E4M3, "e4m3_float8": E4M3, "fp8_e4m3": E4M3, "fp8_e4m3fn": E4M3, "e4m3": E4M3,
    "float8_e5m2": E5M2, "e5m2_float8": E5M2, "fp8_e5m2": E5M2, "e5m2": E5M2,
}  # fmt: skip


def dtype_of(name: str) -> DType | None:
    """The element type called `name` in `.tile` text or in TileLang's spelling, or None."""
    if name in ("i4", "int4", "int4b_t"):
        return I4
    return DTYPES.get(name) or ALIASES.get(name) or ALIASES.get(name.removesuffix("_t"))


class Level(StrEnum):
    """A memory level. WS is the workspace: a part of GM through which cube and vector cores meet."""

    GM = "GM"
    WS = "WS"
    L1 = "L1"
    L0A = "L0A"
    L0B = "L0B"
    L0C = "L0C"
    UB = "UB"
