"""Indices outside of their dimension."""

from __future__ import annotations

from tile_eg.errors import Span, TileError
from tile_eg.frontend.ranges import Ranges, countable, extremes
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr


def never_inside(index: Expr, size: int, ranges: Ranges, where: Expr) -> int | None:
    """A value of an index of which no value lies inside of a dimension where `where` holds; None for others, and where it never
    holds, or where it would take too long to see."""
    if where != ix.ONE and not countable(index, ranges, where):
        return None
    low, high = extremes(index, ranges, where)
    return low if low <= high and (high < 0 or low >= size) else None


def outside(message: str, d: int, index: Expr, value: int, size: int, span: Span | None) -> TileError:
    """The message, and where an index has a value outside of its dimension."""
    what = str(value) if index.value is not None else f"an index takes the value {value}"
    return TileError(f"{message}: {what}, dimension {d} has {size} elements", span, help=f"its indices are 0 to {size - 1}")
