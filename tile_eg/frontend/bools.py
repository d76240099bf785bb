"""What may be stored where bools are: bytes that are 0 or 1."""

from __future__ import annotations

from collections.abc import Collection

from tile_eg.errors import Span, TileError
from tile_eg.ir.kernel import Binary, Broadcast, Cast, Choose, Number, Reduce, Region, Select, TileExpr, Whole


def check_stored(target: Region, value: TileExpr, atomic: str, bools: Collection[str], span: Span | None) -> None:
    """TileError where a place of bools would get other numbers than 0 and 1."""
    if target.name in bools and (atomic or not of_bools(value, bools)):
        help = "m[i, j] = a condition, in T.Parallel; or a buffer of int8 for numbers"
        raise TileError(f"`{target.name}` holds bools, and this may be another number than 0 or 1", span, help=help)


def of_bools(x: TileExpr, bools: Collection[str]) -> bool:
    """Whether all numbers of a tile are 0 or 1."""
    match x:
        case Number():
            return x.value in (0, 1)
        case Region():
            return x.name in bools
        case Choose() | Select():
            return of_bools(x.x, bools) and of_bools(x.y, bools)
        case Binary(op="min" | "max" | "mul"):
            return of_bools(x.x, bools) and of_bools(x.y, bools)
        case Reduce(op="max" | "min") | Broadcast() | Cast():
            return of_bools(x.x, bools)
        case Whole(op="transpose"):
            return of_bools(x.xs[0], bools)
    return False
