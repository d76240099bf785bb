"""Positions of elements as whole numbers: of 32 bits beside others of that type; where 8 or 16 bits are stored, the low bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tile_eg.errors import TileError
from tile_eg.frontend.hints import cast
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.kernel import (
    Assign,
    Binary,
    Broadcast,
    Cast,
    Choose,
    Index,
    Number,
    Pad,
    Parallel,
    Reduce,
    Region,
    Select,
    TileExpr,
    Unary,
    mapped,
)  # fmt: skip
from tile_eg.ops.elementwise import BINARY
from tile_eg.ops.types import F32, I32, SIGNED, U32, DType

Types = Callable[[str], DType | None]
Ranges = Mapping[str, Interval]


def wrapped(x: Expr, dtype: DType) -> Expr:
    """An index as a whole number of a type shorter than 32 bits: its low bits, as C casts a scalar."""
    if dtype.bits >= I32.bits:
        return x
    below = 0 if dtype in SIGNED else 2 ** (dtype.bits - 1)
    return (x + below) % 2**dtype.bits - below


def with_low_bits(s: Parallel, types: Types, ranges: Ranges) -> Parallel:
    """The loop in which each position fits the element type that it is stored in. `ranges` are those of the variables outside of
    it. TileError where its low bits do not tell the result."""
    known = {**ranges, **{v: (0, max(0, n - 1)) for v, n in zip(s.vars, s.extents, strict=True)}}
    return replace(s, body=tuple(_stored(a, types, known) for a in s.body))


def _stored(a: Assign, types: Types, ranges: Ranges) -> Assign:
    value = with_words(mapped(a.value, lambda e: _fitting_cast(e, ranges)), types)
    to = types(a.target.name)
    return replace(a, value=value if to is None or not _is_narrow(to) else _of(value, to, types, ranges))


def _fitting_cast(e: TileExpr, ranges: Ranges) -> TileExpr:
    return replace(e, x=_fitting(e.x, e.dtype, ranges)) if isinstance(e, Cast) and isinstance(e.x, Index) else e


def with_words(value: TileExpr, types: Types) -> TileExpr:
    """The expression in which a position beside whole numbers of 32 bits is one of them, as f32 does not hold all of these."""
    return mapped(value, lambda e: _beside_words(e, types))


def _beside_words(e: TileExpr, types: Types) -> TileExpr:
    if isinstance(e, Binary) and e.op in ("shl", "shr"):  # a position says by how much
        return e
    if not isinstance(e, Select | Choose) and not (isinstance(e, Binary) and I32 in BINARY[e.op].takes):
        return e
    word = _word(e.x, types) or _word(e.y, types)
    return e if word is None else replace(e, x=_as(word, e.x), y=_as(word, e.y))


def _as(word: DType, e: TileExpr) -> TileExpr:
    return Cast(word, e, e.span) if isinstance(e, Index) else e


def _word(e: TileExpr, types: Types) -> DType | None:
    """The whole numbers of 32 bits that an expression is made of; None for other elements, and for numbers and positions."""
    match e:
        case Region():
            dtype = types(e.name)
        case Cast():
            dtype = e.dtype
        case Unary() | Broadcast() | Pad() | Reduce():
            return _word(e.x, types)
        case Binary() if I32 not in BINARY[e.op].takes:
            return None
        case Binary() | Select() | Choose():
            found = [_word(z, types) for z in (e.x, e.y) if not isinstance(z, Number | Index)]
            return found[0] if found and all(d is found[0] for d in found) else None
        case _:
            return None
    return dtype if dtype in (I32, U32) else None


def _is_narrow(dtype: DType) -> bool:
    return dtype.whole and dtype.bits < I32.bits


def _of(e: TileExpr, to: DType, types: Types, ranges: Ranges) -> TileExpr:
    match e:
        case Index():
            return _fitting(e, to, ranges)
        case Select() | Choose():
            return _beside(e, to, types, ranges)
        case Binary() if _only(e, to, types):
            return _joined(e, to, types, ranges)
    return e


def _beside(e: Binary | Select | Choose, to: DType, types: Types, ranges: Ranges) -> TileExpr:
    """Two values of one type: a position beside elements is cast to theirs."""
    x, y = (_of(z, to, types, ranges) for z in (e.x, e.y))
    if isinstance(x, Index) and isinstance(y, Index):
        return replace(e, x=x, y=y)
    x, y = (Cast(to, z, z.span) if isinstance(z, Index) else z for z in (x, y))
    return replace(e, x=x, y=y)


def _joined(e: Binary, to: DType, types: Types, ranges: Ranges) -> TileExpr:
    """An operation on elements of the type that is stored, and positions."""
    if e.op in BINARY and BINARY[e.op].low_bits:
        return _beside(e, to, types, ranges)
    for z in (e.x, e.y):
        if isinstance(z, Index) and not _fits(z.value, to, ranges):
            low, high = ix.bounds(z.value, _all(z.value, ranges))
            what = f"this index may be {low if low < _least(to) else high}, which {to} does not hold"
            span = z.span or e.span
            raise TileError(what, span, help=f"cast it for its low bits, {cast(to, '...', span)}, or compute in 32 bits")
    of_bits = e.op in BINARY and F32 not in BINARY[e.op].takes
    return _beside(e, to, types, ranges) if of_bits else e


def _only(e: TileExpr, to: DType, types: Types) -> bool:
    """Whether a value is made of elements of one type, of positions, and of whole numbers."""
    match e:
        case Region():
            return types(e.name) == to
        case Number():
            return e.value == int(e.value)
        case Binary():
            return _only(e.x, to, types) and _only(e.y, to, types)
        case Select() | Choose():
            return _only(e.x, to, types) and _only(e.y, to, types)
    return isinstance(e, Index) or (isinstance(e, Cast) and e.dtype == to)


def _fitting(e: Index, to: DType, ranges: Ranges) -> TileExpr:
    """An index as one that the type holds."""
    if not _is_narrow(to) or _fits(e.value, to, ranges):
        return e
    return replace(e, value=wrapped(e.value, to))


def _fits(e: Expr, to: DType, ranges: Ranges) -> bool:
    low, high = ix.bounds(e, _all(e, ranges))
    return low >= _least(to) and high < _least(to) + 2**to.bits


def _least(dtype: DType) -> int:
    return 0 if dtype in SIGNED else -(2 ** (dtype.bits - 1))


def _all(e: Expr, ranges: Ranges) -> Mapping[str, Interval]:
    return {**dict.fromkeys(ix.variables(e), (0, ix.ANY)), **ranges}
