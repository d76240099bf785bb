"""Quotients and remainders of whole numbers, element by element, as those of Python: rounded down, the remainder with the sign of
the divisor. By 0 they are some number. A quotient that the type does not hold, of its least number by -1, is the least one of i32
and the largest one of shorter types. Those of floats are computed in f32: the remainder is x less a whole multiple of y, which
rounds."""

from __future__ import annotations

from collections.abc import Callable

from tile_eg.errors import Span, TileError
from tile_eg.frontend.checks.numbers import check_number
from tile_eg.frontend.hints import cast
from tile_eg.ir import kernel as kn
from tile_eg.ir.kernel import TileExpr
from tile_eg.ops.types import F32, I32, U32, DType

QUOTIENT = ("//", "T.floordiv")
AS_C = "fmod"
BELOW_ONE = 1 - 2.0**-24
"""The number of f32 before 1: times another one it is that before that one."""


def divided(sign: str, x: TileExpr, y: TileExpr, dtype_of: Callable[[str], DType | None], span: Span) -> TileExpr:
    """x // y or x % y, as `sign` names it: `%` and T.floormod are the remainder, `fmod` that with the sign of x. TileError unless
    numbers of one kind are divided."""
    found = {d for e in (x, y) if (d := _dtype(e, dtype_of)) is not None}
    if found and not any(d.whole for d in found):
        return _of_floats(sign, x, y, found.pop() if len(found) == 1 else F32, span)
    if sign.endswith(AS_C):
        help = f"cast x first: {cast(F32, 'x', span)}; x % n of whole numbers has the sign of n"
        raise TileError(f"{sign} is of elements that are floats", span, help=help)
    dtype = found.pop() if len(found) == 1 else None
    if dtype is None:
        help = "cast one of them to the other's type" if found else f"cast x first: {cast(F32, 'x', span)}"
        raise TileError(f"`{sign}` divides whole numbers of one type, or floats", span, help=help)
    _check_numbers(sign, x, y, dtype, span)
    power = _power_of_two(y)
    if power is not None:
        left = kn.Binary("shr", x, kn.Number(float(power)), span) if power else x
        return left if sign in QUOTIENT else kn.Binary("and", x, kn.Number(2.0**power - 1), span)
    if dtype == U32:
        raise TileError(f"`{sign}` of u32 is by a power of two", span, help="cast to int32 where the numbers are below 2^31")
    quotient, rest = _long(x, y, span) if dtype == I32 else _short(x, y, dtype, span)
    return quotient if sign in QUOTIENT else rest


def _of_floats(sign: str, x: TileExpr, y: TileExpr, dtype: DType, span: Span) -> TileExpr:
    a, b = _float(x, span), _float(y, span)
    value = _down(a, b, span) if sign in QUOTIENT else _left_as_c(a, b, span) if sign.endswith(AS_C) else _left(a, b, span)
    return value if dtype == F32 else kn.Cast(dtype, value, span)


def _left(x: TileExpr, y: TileExpr, span: Span) -> TileExpr:
    """What a multiple of y leaves of x. A quotient that was rounded to the next whole number leaves what is next to 0 or y."""
    import numpy as np

    rest = _less(x, _down(x, y, span), y, span)
    if _power_of_two(y) is not None:
        return rest
    zero = kn.Number(0.0)
    if isinstance(y, kn.Number):
        ends = sorted((0.0, float(np.float32(y.value)) * BELOW_ONE))
        return _within(rest, kn.Number(ends[0]), kn.Number(ends[1]), span)
    end = kn.Binary("mul", y, kn.Number(BELOW_ONE), span)
    return _within(rest, kn.Binary("min", end, zero, span), kn.Binary("max", end, zero, span), span)


def _left_as_c(x: TileExpr, y: TileExpr, span: Span) -> TileExpr:
    """The remainder with the sign of x."""
    rest = _less(x, kn.Unary("trunc", kn.Binary("div", x, y, span), span), y, span)
    return _within(rest, kn.Binary("min", x, kn.Number(0.0), span), kn.Binary("max", x, kn.Number(0.0), span), span)


def _within(x: TileExpr, low: TileExpr, high: TileExpr, span: Span) -> TileExpr:
    return kn.Binary("max", kn.Binary("min", x, high, span), low, span)


def _check_numbers(sign: str, x: TileExpr, y: TileExpr, dtype: DType, span: Span) -> None:
    for e in (x, y):
        if isinstance(e, kn.Number):
            check_number(dtype, e.value, e.span or span)
    if isinstance(y, kn.Number) and y.value == 0:
        raise TileError(f"`{sign}` by 0", span, help="a divisor is another number, or a tile's element")


def _dtype(e: TileExpr, dtype_of: Callable[[str], DType | None]) -> DType | None:
    """The element type of an expression; None of a number."""
    if isinstance(e, kn.Region):
        return dtype_of(e.name)
    if isinstance(e, kn.Cast | kn.Bytes):
        return e.dtype
    parts = (getattr(e, n) for n in ("x", "y") if hasattr(e, n))
    return next((d for part in parts if (d := _dtype(part, dtype_of)) is not None), None)


def _power_of_two(y: TileExpr) -> int | None:
    """The exponent, where a number is a power of two."""
    n = int(y.value) if isinstance(y, kn.Number) and y.value > 0 and y.value.is_integer() else 0
    return n.bit_length() - 1 if n and n & (n - 1) == 0 else None


def _short(x: TileExpr, y: TileExpr, dtype: DType, span: Span) -> tuple[TileExpr, TileExpr]:
    """Of up to 16 bits: no quotient lies as near to a whole number as f32 rounds, and all products are exact in it. A number may
    divide as its reciprocal: half of one more keeps whole quotients away from where that rounds."""
    a, b = _float(x, span), _float(y, span)
    more = kn.Binary("add", a, kn.Number(0.5 if y.value > 0 else -0.5), span) if isinstance(y, kn.Number) else a
    down = _down(more, b, span)
    rest = kn.Binary("sub", a, kn.Binary("mul", down, b, span), span)
    return kn.Cast(dtype, down, span), kn.Cast(dtype, rest, span)


def _long(x: TileExpr, y: TileExpr, span: Span) -> tuple[TileExpr, TileExpr]:
    """Of 32 bits: f32 finds the quotient but for 2^31 * 3 * 2^-24 = 384, and that of what is left but for 1."""
    quotient: TileExpr = kn.Cast(I32, _down(_float(x, span), _float(y, span), span), span)
    rest = _less(x, quotient, y, span)
    more = kn.Cast(I32, _down(_float(rest, span), _float(y, span), span), span)
    quotient, rest = kn.Binary("add", quotient, more, span), _less(rest, more, y, span)
    beyond = ("le", _minus_abs(rest, span), _minus_abs(y, span))
    below = ("lt", kn.Binary("mul", _float(rest, span), _float(y, span), span), kn.Number(0.0, span))
    for (op, a, b), step in ((beyond, 1.0), (below, -1.0)):
        other = kn.Binary("add", quotient, kn.Number(step), span)
        left = _less(rest, kn.Number(step), y, span)
        quotient, rest = kn.Choose(op, a, b, other, quotient, span), kn.Choose(op, a, b, left, rest, span)
    return quotient, rest


def _minus_abs(x: TileExpr, span: Span) -> TileExpr:
    """-|x|, which every number has; |x| is none of 32 bits where x is the least one."""
    if isinstance(x, kn.Number):
        return kn.Number(-abs(x.value))
    return kn.Binary("min", x, kn.Binary("mul", x, kn.Number(-1.0), span), span)


def _float(x: TileExpr, span: Span) -> TileExpr:
    return x if isinstance(x, kn.Number) else kn.Cast(F32, x, span)


def _down(x: TileExpr, y: TileExpr, span: Span) -> TileExpr:
    return kn.Unary("floor", kn.Binary("div", x, y, span), span)


def _less(x: TileExpr, times: TileExpr, y: TileExpr, span: Span) -> TileExpr:
    """x - times * y."""
    if isinstance(times, kn.Number):
        return kn.Binary("sub" if times.value > 0 else "add", x, y, span)
    return kn.Binary("sub", x, kn.Binary("mul", times, y, span), span)
