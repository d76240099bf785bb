"""Vectors that an author wrote as (n, 1) stand beside a tile as columns, one value a row, tiles of one row as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_eg.ir.kernel import Binary, Broadcast, Cast, Choose, MatMul, Reduce, Region, Select, TileExpr, Unary


def spread(value: TileExpr, shape: tuple[int, ...], columns: set[str]) -> TileExpr:
    """`value` where this shape is needed: what is computed from `columns` alone is spread along the rows, a row down them."""
    return _spread(value, len(shape), shape, columns)


def _spread(value: TileExpr, rank: int, shape: tuple[int, ...], columns: set[str]) -> TileExpr:
    if rank == 2 and _rank(value) == 1 and _is_column(value, columns):
        return Broadcast(value, 1, value.span)
    row = isinstance(value, Region) and len(shape) == rank == 2 and value.shape == (1, shape[1]) != shape
    if isinstance(value, Region) and row and value.extents[-1] == shape[1]:
        at = value.extents.index(1)
        return Broadcast(replace(value, extents=(*value.extents[:at], None, *value.extents[at + 1 :])), 0, value.span)
    deep = max(rank, _rank(value)) if _rank(value) else rank
    match value:
        case Unary() | Cast():
            return replace(value, x=_spread(value.x, deep, shape, columns))
        case Binary() | Select():
            return replace(value, x=_spread(value.x, deep, shape, columns), y=_spread(value.y, deep, shape, columns))
        case Choose():
            a, b, x, y = (_spread(part, deep, shape, columns) for part in _parts(value))
            return replace(value, a=a, b=b, x=x, y=y)
        case Reduce():
            return replace(value, x=_spread(value.x, _rank(value.x), (), columns))
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
