"""Which numbers an element type of whole numbers holds."""

from __future__ import annotations

from tile_eg.errors import TileError
from tile_eg.frontend.hints import cast
from tile_eg.ir import kernel as kn
from tile_eg.ir.passed import Passed
from tile_eg.ops.types import F32, I32, SIGNED, WHOLE, DType


def check_number(dtype: DType, value: float, span: kn.Span | None, beside: bool = True) -> None:
    """TileError where an element type of whole numbers does not hold a number."""
    if dtype not in WHOLE:
        return
    low, high = (0, 2**dtype.bits) if dtype in SIGNED else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1))
    if isinstance(value, Passed) and value.is_within(low, high):
        return
    if value != value // 1 or not low <= value < high:
        named = f"{value:g}" if value != value // 1 else f"{int(value)}"
        help = _another_number(dtype, value, span, beside)
        raise TileError(f"{named} is no {dtype}, which holds whole numbers from {low} to {high - 1}", span, help=help)


def _another_number(dtype: DType, value: float, span: kn.Span | None, beside: bool) -> str:
    """What to write in place of a number that a type of whole numbers does not hold."""
    if value != value // 1:
        return f"cast x first: {cast(F32, 'x', span)}" if beside else ""
    if -(2 ** (dtype.bits - 1)) <= value < 2**dtype.bits:
        same = f"{int(value) + (2**dtype.bits if value < 0 else -(2**dtype.bits))} has the same bits"
        return f"cast x first: {cast(I32, 'x', span)}; {same}" if beside and dtype.bits < 32 else same
    if -(2**31) <= value < 2**31:
        return f"cast x first: {cast(I32, 'x', span)}" if beside else ""
    return "no type has more than 32 bits; floats have larger numbers" + (f": {cast(F32, 'x', span)}" if beside else "")
