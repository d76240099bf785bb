"""What values whole numbers may have: where they fit a byte, nothing has to go through one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.ir import kernel as kn
from tile_eg.ir.kernel import TileExpr
from tile_eg.ops.types import I8, I16, SIGNED, U8, WHOLE, DType

Range = tuple[int, int]
Types = Callable[[TileExpr], DType | None]


def limits(dtype: DType) -> Range:
    """The least and the largest number of a type."""
    bits = dtype.bits
    return (0, 2**bits - 1) if dtype in SIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def plain(e: TileExpr, dtype: Types) -> TileExpr:
    """An expression without a way through bytes, or bits that are kept, where all its values fit."""
    match e:
        case kn.Cast() if e.dtype in WHOLE and e.dtype == dtype(e.x):
            return e.x
        case kn.Cast(dtype=d, x=kn.Cast() as byte) if d == I16 == dtype(byte.x) and byte.dtype in (I8, U8):
            return byte.x if _within(range_of(byte.x, dtype), limits(byte.dtype)) else e
        case kn.Cast(dtype=d, x=kn.Cast() as byte) if {d, byte.dtype} == {I8, U8} and dtype(byte.x) == I16:
            return replace(e, x=byte.x) if _within(range_of(byte.x, dtype), (0, 127)) else e
        case kn.Binary(op="and", y=kn.Number(value=255.0)) if dtype(e.x) == I16 and _within(range_of(e.x, dtype), (0, 255)):
            return e.x
        case kn.Binary(op="add", x=kn.Binary(op="add", y=kn.Number()) as x, y=kn.Number()) if dtype(x.x) == I16:
            assert isinstance(x.y, kn.Number) and isinstance(e.y, kn.Number)
            fits = _within(range_of(x, dtype), limits(I16), strictly=True)
            return x.x if x.y.value == -e.y.value and fits else e
    return e


def _within(x: Range | None, y: Range, strictly: bool = False) -> bool:
    return x is not None and y[0] + strictly <= x[0] and x[1] <= y[1] - strictly


def range_of(e: TileExpr, dtype: Types) -> Range | None:
    """An interval around the values of an expression of whole numbers; None of others."""
    if isinstance(e, kn.Number):
        return (int(e.value), int(e.value)) if float(e.value).is_integer() else None
    own = dtype(e)
    if own not in WHOLE:
        return None
    found, all_of_it = _range(e, dtype), limits(own)  # type: ignore[arg-type]
    return found if _within(found, all_of_it) else all_of_it


def _range(e: TileExpr, dtype: Types) -> Range | None:
    """What follows from the operands; None, or too much, where nothing does."""
    match e:
        case kn.Cast():
            x, of = range_of(e.x, dtype), dtype(e.x)
            low, high = limits(e.dtype)
            keeps_bits = of is not None and of.bits == e.dtype.bits
            return x if x is None or keeps_bits else (min(max(x[0], low), high), min(max(x[1], low), high))
        case kn.Binary(op="sub", x=kn.Binary(op="or", x=a, y=b) as either, y=kn.Binary(op="and", x=c, y=d)) if (a, b) == (c, d):
            return _bits(either, dtype)
        case kn.Binary(op="or"):
            return _bits(e, dtype)
        case kn.Binary():
            x, y = range_of(e.x, dtype), range_of(e.y, dtype)
            return None if x is None or y is None else _of_pair(e.op, x, y)
    return None


def _bits(e: kn.Binary, dtype: Types) -> Range | None:
    """Of bits of either operand, where none is below 0."""
    x, y = range_of(e.x, dtype), range_of(e.y, dtype)
    natural = x is not None and y is not None and min(x[0], y[0]) >= 0
    return (0, 2 ** max(x[1], y[1]).bit_length() - 1) if natural else None  # type: ignore[index]


def _of_pair(op: str, x: Range, y: Range) -> Range | None:
    match op:
        case "add":
            return x[0] + y[0], x[1] + y[1]
        case "sub":
            return x[0] - y[1], x[1] - y[0]
        case "mul":
            ends = [a * b for a in x for b in y]
            return min(ends), max(ends)
        case "max":
            return max(x[0], y[0]), max(x[1], y[1])
        case "min":
            return min(x[0], y[0]), min(x[1], y[1])
        case "and" if max(x[0], y[0]) >= 0:
            return 0, min(high for low, high in (x, y) if low >= 0)
        case "shl" if y[0] == y[1] >= 0:
            return x[0] << y[0], x[1] << y[0]
        case "shr" if y[0] == y[1] >= 0:
            return x[0] >> y[0], x[1] >> y[0]
    return None
