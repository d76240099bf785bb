"""Element types of operations on whole numbers, as NumPy has them."""

from __future__ import annotations

from tile_eg.errors import Span, TileError
from tile_eg.ops.types import F32, I16, I32, WHOLE, DType, holds_all


def wider(a: DType, b: DType, span: Span | None) -> DType:
    """The whole numbers that hold those of both types."""
    found = next((t for t in WHOLE if holds_all(t, a) and holds_all(t, b)), None)
    if found is None:
        raise TileError(f"{a} and {b} do not mix: no type of 32 bits has the numbers of both", span, help="cast one of them")
    return found


def reduced_as(op: str, dtype: DType) -> DType:
    """As what whole numbers are reduced: sums are of 32 bits, extremes of no less than 16, means of floats."""
    if op == "mean":
        return F32
    return I32 if op == "sum" and dtype.bits < I32.bits else I16 if dtype.bits < I16.bits else dtype
