"""Whole numbers that no instruction takes, by those that one does: bytes by numbers of 16 bits, numbers without a sign by those
with one. Of a result that does not fit, the lowest bits are kept."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.ir import kernel as kn
from tile_eg.ir.kernel import TileExpr
from tile_eg.ops.types import F16, F32, I8, I16, I32, SIGNED, U8, U16, U32, DType

BYTES, UNSIGNED = (I8, U8), (U16, U32)
GROWS = ("add", "sub", "mul", "shl")
"""Operations on two bytes whose result may be none; so may that of all on one but relu."""


def needs_composition(dtype: DType | None) -> bool:
    return dtype in (*BYTES, *UNSIGNED)


def computed(e: kn.Unary | kn.Binary, dtype: DType | None) -> TileExpr:
    """An operation on elements of a type; itself where an instruction takes them."""
    if dtype in BYTES:
        return _of_bytes(e, dtype)  # type: ignore[arg-type]
    if dtype not in UNSIGNED:
        return e
    if e.op in ("abs", "relu"):
        return e.x
    if e.op == "neg":
        return kn.Binary("sub", kn.Number(0.0), e.x, e.span)
    return _moved(e, dtype) if e.op in ("max", "min") else e  # type: ignore[arg-type]


def _of_bytes(e: kn.Unary | kn.Binary, dtype: DType) -> TileExpr:
    """In numbers of 16 bits, of which the lowest eight are kept."""
    if dtype == U8 and e.op in ("abs", "relu"):
        return e.x
    if e.op == "neg":
        e = kn.Binary("sub", kn.Number(0.0), e.x, e.span)
    grows = e.op in GROWS if isinstance(e, kn.Binary) else e.op != "relu"
    if e.op in ("abs", "relu"):
        wide = kn.Cast(I16, e.x, e.span)
        made: TileExpr = kn.Binary("max", wide, _minus(wide) if e.op == "abs" else kn.Number(0.0), e.span)
    else:
        made = replace(e, **{n: _wide(getattr(e, n)) for n in ("x", "y") if hasattr(e, n)})  # type: ignore[arg-type]
    return kn.Cast(dtype, _low(made, dtype) if grows else made, e.span)


def _wide(x: TileExpr) -> TileExpr:
    return x if isinstance(x, kn.Number) else kn.Cast(I16, x, getattr(x, "span", None))


def _minus(x: TileExpr) -> TileExpr:
    return kn.Binary("mul", x, kn.Number(-1.0))


def _low(x: TileExpr, dtype: DType) -> TileExpr:
    """The number that the lowest eight bits are."""
    if dtype == U8:
        return _and(x, 255)
    return _plus(_and(_plus(x, 128), 255), -128)


def _and(x: TileExpr, bits: int) -> TileExpr:
    return kn.Binary("and", x, kn.Number(float(bits)))


def _plus(x: TileExpr, n: int) -> TileExpr:
    return kn.Binary("add", x, kn.Number(float(n)))


def _moved(e: kn.Unary | kn.Binary, dtype: DType) -> TileExpr:
    """The larger or smaller of two numbers without a sign: by numbers with one, half the range below."""
    assert isinstance(e, kn.Binary)
    joined = kn.Binary(e.op, below(e.x, dtype), below(e.y, dtype), e.span)
    return kn.Cast(dtype, _plus(joined, -(2 ** (dtype.bits - 1))), e.span)


def below(x: TileExpr, dtype: DType) -> TileExpr:
    """A number without a sign as one with it, half the range below: which of two is larger stays so."""
    half = 2 ** (dtype.bits - 1)
    if isinstance(x, kn.Number):
        return kn.Number(x.value - half, x.span)
    return _plus(kn.Cast(SIGNED[dtype], x, getattr(x, "span", None)), -half)


def same_bits(x: TileExpr, dtype: DType) -> TileExpr:
    """A number without a sign as the one with it that has the same bits."""
    if isinstance(x, kn.Number):
        return kn.Number(x.value - (2**dtype.bits if x.value >= 2 ** (dtype.bits - 1) else 0), x.span)
    return kn.Cast(SIGNED[dtype], x, getattr(x, "span", None))


def reduced(e: kn.Reduce, dtype: DType | None) -> TileExpr:
    """A reduction of elements of a type; itself where its halves can be joined."""
    if dtype in BYTES:
        made: TileExpr = replace(e, x=_wide(e.x))
        return kn.Cast(dtype, _low(made, dtype) if e.op == "sum" else made, e.span)  # type: ignore[arg-type]
    if dtype not in UNSIGNED or e.op == "sum":
        return e
    half = 2 ** (dtype.bits - 1)  # type: ignore[union-attr]
    below = _plus(kn.Cast(SIGNED[dtype], e.x, e.span), -half)  # type: ignore[index]
    return kn.Cast(dtype, _plus(replace(e, x=below), -half), e.span)  # type: ignore[arg-type]


def repeated(e: kn.Broadcast, dtype: DType | None) -> TileExpr:
    """A vector as a tile; bytes as the numbers of f16 that they are."""
    return kn.Cast(dtype, replace(e, x=kn.Cast(F16, e.x, e.span)), e.span) if dtype in BYTES else e  # type: ignore[arg-type]


def converted(x: TileExpr, of: DType, to: DType) -> TileExpr | None:
    """A cast between a number of 16 or 32 bits without a sign and another type; None where it keeps the bits, or has an
    instruction."""
    if of == to or (of.whole and to.whole and of.bits == to.bits) or not {of, to} & set(UNSIGNED):
        return None
    if of in UNSIGNED:
        found = _float_of(x, of)
        return found if to == F32 else converted(found, F32, to) or kn.Cast(to, found)
    wide = x if of == F32 else kn.Cast(F32, x)
    return _unsigned_of(wide, to)


def _float_of(x: TileExpr, of: DType) -> TileExpr:
    """The number in f32, rounded once."""
    if of == U16:
        value = kn.Cast(F32, kn.Cast(I16, x))
        return kn.Choose("lt", value, kn.Number(0.0), _plus(value, 2**16), value)
    high, low = (kn.Cast(F32, kn.Cast(I32, part)) for part in (kn.Binary("shr", x, kn.Number(16.0)), _and(x, 2**16 - 1)))
    return kn.Binary("add", kn.Binary("mul", high, kn.Number(float(2**16))), low)


def _unsigned_of(x: TileExpr, to: DType) -> TileExpr:
    """f32 rounded to even, within the type's range: what the type with a sign has no room for becomes a negative number of it."""
    half, all_of_it = float(2 ** (to.bits - 1)), float(2**to.bits)
    near: TileExpr = kn.Unary("round", x) if to == U16 else x
    above = kn.Binary("min", kn.Binary("sub", near, kn.Number(all_of_it)), kn.Number(-1.0))
    chosen = kn.Choose("ge", near, kn.Number(half), above, kn.Binary("max", near, kn.Number(0.0)))
    return kn.Cast(to, kn.Cast(SIGNED[to], chosen))
