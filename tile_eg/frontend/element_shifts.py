"""Shifts of elements by elements, `x[i] << s[i]`: by 1, 2, 4 and so on, each where that bit of the number of places is 1.

A number of places counts by its low bits alone: five of them for types of 32 bits, of which there are 0 to 31.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.ir.kernel import Binary, Cast, Choose, Number, TileExpr
from tile_eg.ir.operands import regions
from tile_eg.ops.types import DType

SHIFTS = ("shl", "shr")


def with_known_shifts(e: TileExpr, type_of: Callable[[TileExpr], DType | None]) -> TileExpr:
    """A shift by elements as a chain of shifts by numbers; any other expression as it is."""
    if not isinstance(e, Binary) or e.op not in SHIFTS or not any(True for _ in regions(e.y)):
        return e
    of = type_of(e.x) or type_of(e.y)
    if of is None or not of.whole:
        return e
    by = e.y if type_of(e.y) == of else Cast(of, e.y, e.span)
    x = _as_tile(e.x, by)
    for k in range(of.bits.bit_length() - 1):
        places = Binary("shr", by, Number(float(k), e.span), e.span) if k else by
        bit = Binary("and", places, Number(1.0, e.span), e.span)
        x = Choose("ne", bit, Number(0.0, e.span), replace(e, x=x, y=Number(float(1 << k), e.span)), x, e.span)
    return x


def _as_tile(x: TileExpr, like: TileExpr) -> TileExpr:
    """A number as elements of the type of others."""
    if not isinstance(x, Number):
        return x
    return Binary("or", Binary("and", like, Number(0.0, x.span), x.span), x, x.span)
