"""Element types of operations on whole numbers, as NumPy has them."""

from __future__ import annotations

from tile_eg.errors import Span, TileError
from tile_eg.ops.types import BF16, F16, F32, I8, I16, I32, U8, WHOLE, DType, holds_all


def wider(a: DType, b: DType, span: Span | None) -> DType:
    """The whole numbers that hold those of both types."""
    found = next((t for t in WHOLE if holds_all(t, a) and holds_all(t, b)), None)
    if found is None:
        raise TileError(f"{a} and {b} do not mix: no type of 32 bits has the numbers of both", span, help="cast one of them")
    return found


def beside_bytes(a: DType, b: DType) -> DType | None:
    """Floats of 16 bits beside bytes, whose numbers they have."""
    of, other = (b, a) if a.whole else (a, b)
    return of if of in (F16, BF16) and other in (I8, U8) else None


def reduced_as(op: str, dtype: DType) -> DType:
    """As what whole numbers are reduced: sums are of 32 bits, extremes of no less than 16, means of floats."""
    if op == "mean":
        return F32
    return I32 if op == "sum" and dtype.bits < I32.bits else I16 if dtype.bits < I16.bits else dtype
