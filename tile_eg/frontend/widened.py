"""What an assignment computes, in types in which nothing is lost that its target would hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.frontend.element_shifts import with_known_shifts
from tile_eg.frontend.whole_powers import with_products
from tile_eg.ir.accuracy import OPERATIONS
from tile_eg.ir.kernel import (
    BIT,
    Binary,
    Broadcast,
    Bytes,
    Cast,
    Choose,
    Index,
    Number,
    Reduce,
    Region,
    Select,
    TileExpr,
    Unary,
    Whole,
    mapped,
)
from tile_eg.ops.elementwise import UNARY
from tile_eg.ops.types import BF16, F16, F32, I32, DType, holds_all

Types = Callable[[str], DType | None]
WHOLE_RESULTS = (*(f.name for f in UNARY.values() if f.native == "Cast"), "sign")
OF_WHOLE = tuple(f.name for f in OPERATIONS if I32 in f.takes)
"""Operations that give whole numbers, and those that do so of whole numbers."""


def widened(e: TileExpr, to: DType | None, types: Types) -> TileExpr:
    """The value of an assignment to elements of the type `to`: what is reduced is of `to` where that holds more, and of whole
    numbers of two types in one operation the shorter ones are cast to the others, if these hold them.
    Shifts are by numbers, and powers of whole numbers products. Floats without a fraction, `round(x)`, become whole numbers."""

    def changed(part: TileExpr) -> TileExpr:
        of = lambda x: element_type(x, types)  # noqa: E731
        return with_products(with_known_shifts(_of_one_type(part, types), of), of)

    value = mapped(_wide_sums(e, to, types), changed)
    of = element_type(value, types)
    if to is None or not to.whole or of is None or of.whole or not _has_no_fraction(value, types):
        return value
    return Cast(to, value, getattr(value, "span", None))


def _has_no_fraction(e: TileExpr, types: Types) -> bool:
    """Whether an expression of floats is made so that all its elements are whole numbers."""
    match e:
        case Number():
            return not isinstance(e.value, float) or e.value.is_integer()
        case Unary():
            return e.op in WHOLE_RESULTS or (e.op in OF_WHOLE and _has_no_fraction(e.x, types))
        case Binary():
            return e.op in OF_WHOLE and _has_no_fraction(e.x, types) and _has_no_fraction(e.y, types)
        case Select() | Choose():
            return _has_no_fraction(e.x, types) and _has_no_fraction(e.y, types)
        case Cast():
            return e.dtype.whole or _has_no_fraction(e.x, types)
        case Region():
            return (of := types(e.name)) is not None and of.whole
    return isinstance(e, Index)


def _of_one_type(e: TileExpr, types: Types) -> TileExpr:
    match e:
        case Binary() | Select():
            x, y = _alike(e.x, e.y, types)
            return e if x is e.x and y is e.y else replace(e, x=x, y=y)
        case Choose() if e.op != BIT:
            x, y, a, b = *_alike(e.x, e.y, types), *_alike(e.a, e.b, types)
            return e if (x, y, a, b) == (e.x, e.y, e.a, e.b) else replace(e, x=x, y=y, a=a, b=b)
    return e


def _alike(x: TileExpr, y: TileExpr, types: Types) -> tuple[TileExpr, TileExpr]:
    of, other = element_type(x, types), element_type(y, types)
    if of is None or other is None or of == other:
        return x, y
    if holds_all(other, of):
        return Cast(other, x, getattr(x, "span", None)), y
    return (x, Cast(of, y, getattr(y, "span", None))) if holds_all(of, other) else (x, y)


def _wide_sums(e: TileExpr, to: DType | None, types: Types) -> TileExpr:
    """A cast says what its operand is rounded to, so reductions in it are made in its own type."""
    match e:
        case Reduce():
            return replace(e, x=wide_operand(e.op, e.x, to, types))
        case Cast():
            return replace(e, x=_wide_sums(e.x, e.dtype, types))
        case Unary() | Broadcast():
            return replace(e, x=_wide_sums(e.x, to, types))
        case Binary() | Select() | Choose():
            return replace(e, x=_wide_sums(e.x, to, types), y=_wide_sums(e.y, to, types))
    return e


def wide_operand(op: str, x: TileExpr, to: DType | None, types: Types) -> TileExpr:
    """What is reduced, in a type in which nothing is lost that the result would hold: floats that add up in f32, short whole
    numbers in the wider ones of the result, or in 32 bits where that holds floats."""
    of = element_type(x, types)
    wide = None if of is None or to is None else _wide(op, of, to)
    if wide is None:
        return x
    return replace(x, x=wide_operand(op, x.x, to, types)) if isinstance(x, Unary) else Cast(wide, x, getattr(x, "span", None))


def _wide(op: str, of: DType, to: DType) -> DType | None:
    """The type in which elements are reduced, if it is not their own."""
    if not of.whole:
        return F32 if op == "sum" and of in (F16, BF16) and to == F32 else None
    if of.bits >= I32.bits or (to.whole and to.bits <= of.bits):
        return None
    return to if to.whole else I32


def element_type(e: TileExpr, types: Types) -> DType | None:
    """The element type of an expression; None of numbers and positions. Of two that differ, the wider whole numbers, or f32."""
    match e:
        case Region():
            return types(e.name)
        case Cast() | Bytes():
            return e.dtype
        case Whole():
            return element_type(e.xs[0], types)
    found = {d for n in ("x", "y") if hasattr(e, n) and (d := element_type(getattr(e, n), types)) is not None}
    if len(found) < 2:
        return found.pop() if found else None
    return next((d for d in found if all(holds_all(d, other) for other in found)), F32)
