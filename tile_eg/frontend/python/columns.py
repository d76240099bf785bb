"""Vectors that an author wrote as (n, 1) stand beside a tile as columns: one value a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_eg.ir.kernel import Binary, Broadcast, Cast, Choose, MatMul, Reduce, Region, Select, TileExpr, Unary


def spread(value: TileExpr, rank: int, columns: set[str]) -> TileExpr:
    """`value` where a tile of `rank` dimensions is needed: what is computed from `columns` alone is spread along the rows."""
    if rank == 2 and _rank(value) == 1 and _is_column(value, columns):
        return Broadcast(value, 1, value.span)
    deep = max(rank, _rank(value)) if _rank(value) else rank
    match value:
        case Unary() | Cast():
            return replace(value, x=spread(value.x, deep, columns))
        case Binary() | Select():
            return replace(value, x=spread(value.x, deep, columns), y=spread(value.y, deep, columns))
        case Choose():
            a, b, x, y = (spread(part, deep, columns) for part in _parts(value))
            return replace(value, a=a, b=b, x=x, y=y)
        case Reduce():
            return replace(value, x=spread(value.x, _rank(value.x), columns))
    return value


def _rank(e: TileExpr) -> int:
    """The dimensions of what an expression gives; 0: a number."""
    match e:
        case Region():
            return len(e.shape)
        case Broadcast() | MatMul():
            return 2
        case Reduce():
            return max(0, _rank(e.x) - 1)
    return max(map(_rank, _parts(e)), default=0)


def _parts(e: TileExpr) -> Iterator[TileExpr]:
    match e:
        case Unary() | Cast():
            yield e.x
        case Binary() | Select():
            yield from (e.x, e.y)
        case Choose():
            yield from (e.a, e.b, e.x, e.y)


def _is_column(e: TileExpr, columns: set[str]) -> bool:
    """Whether all vectors in an expression of vectors are columns."""
    if isinstance(e, Region):
        return not e.shape or e.name in columns
    return not isinstance(e, Reduce) and all(_is_column(part, columns) for part in _parts(e))
