"""Tensors and buffers of bools: bytes that are 0 or 1, and conditions where they are looked at."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.conditions import Compared, chosen, of_elements
from tile_eg.frontend.python.values import Buffer, Window, as_tile, region, value_buffer
from tile_eg.ir.kernel import Binary, Broadcast, Cast, Choose, Number, Reduce, Region, Select, TileExpr, Whole


def is_bool(dtype: Any) -> bool:
    """Whether an author's dtype is that of bools."""
    return str(dtype).removeprefix("torch.") in ("bool", "bool_")


def holds_bools(value: Any) -> bool:
    return isinstance(value, Buffer | Window) and value_buffer(value).truth


def is_truth(value: Any) -> bool:
    """Whether a value is one of bools."""
    return of_elements(value) or isinstance(value, bool) or holds_bools(value)


def as_condition(value: Any, span: Span | None) -> Any:
    """What a branch asks: of one element of a buffer, whether it is not 0; anything else as it is."""
    if isinstance(value, Window) and value.is_point:
        return Compared("ne", region(value), Number(0.0, span), span)
    return truth_of(value, span)


def truth_of(value: Any, span: Span | None) -> Any:
    """Bools that a buffer holds as a condition; anything else as it is."""
    return Compared("ne", as_tile(value, span), Number(0.0, span), span) if holds_bools(value) else value


def as_stored(place: Any, value: Any, span: Span | None) -> TileExpr:
    """What is stored of a value: in a place of bools 1 where it is not 0, else 0."""
    x = as_tile(value, span)
    if not holds_bools(place) or is_truth(value):
        return x
    if isinstance(x, Number):
        return Number(float(x.value != 0), span)
    return chosen(Compared("ne", x, Number(0.0, span), span), Number(1.0, span), Number(0.0, span), span)


def check_stored(target: Region, value: TileExpr, atomic: bool, bools: Collection[str], span: Span | None) -> None:
    """TileError where a place of bools would get other numbers than 0 and 1."""
    if target.name in bools and (atomic or not _of_bools(value, bools)):
        help = "m[i, j] = a condition, in T.Parallel; or a buffer of int8 for numbers"
        raise TileError(f"`{target.name}` holds bools, and this may be another number than 0 or 1", span, help=help)


def _of_bools(x: TileExpr, bools: Collection[str]) -> bool:
    """Whether all numbers of a tile are 0 or 1."""
    match x:
        case Number():
            return x.value in (0, 1)
        case Region():
            return x.name in bools
        case Choose() | Select():
            return _of_bools(x.x, bools) and _of_bools(x.y, bools)
        case Binary(op="min" | "max" | "mul"):
            return _of_bools(x.x, bools) and _of_bools(x.y, bools)
        case Reduce(op="max" | "min") | Broadcast() | Cast():
            return _of_bools(x.x, bools)
        case Whole(op="transpose"):
            return _of_bools(x.xs[0], bools)
    return False


def check_copied(src: Any, dst: Any, span: Span | None) -> None:
    """TileError where numbers are copied to where bools are."""
    if holds_bools(dst) and not is_truth(src):
        help = "compare them: m[i, j] = x[i, j] != 0 in T.Parallel"
        raise TileError(f"`{value_buffer(dst).name}` holds bools, and what is copied are numbers", span, help=help)
