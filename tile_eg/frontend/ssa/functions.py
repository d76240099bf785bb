"""Functions of f32 that are made of others: tangent, inverses, hyperbolic ones, logarithms and powers near 1.

The polynomials of asin, acos and atan are those of S. Moshier's Cephes library (1989), good to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_eg.frontend.ssa.terms import add, div, mul, number, polynomial, sub, un, where
from tile_eg.ir import kernel as kn
from tile_eg.ir.kernel import TileExpr

PI_PARTS = (3.140625, 0.000965118408203125, 2.5331974029541016e-06, 1.984187036896401e-09)
"""Pi as a sum of numbers, all but the last of eight bits: their products with half a whole number below 2^15 are exact in f32
(W. Cody and W. Waite, Software Manual for the Elementary Functions, 1980)."""
SINE = (1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6)
COSINE = (-1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0)
"""Series in r^2, of (sin(r) / r - 1) / r^2 and of cos(r), for |r| <= pi / 4."""
ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
ASIN = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)
SINH = (1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6)
LARGE = 1e9
"""Beyond this, x^2 + 1 is x^2 in f32."""


def _odd(x: TileExpr, of_size: Callable[[TileExpr], TileExpr]) -> TileExpr:
    """A function that changes its sign with its operand."""
    value = of_size(un("abs", x))
    return where(x, "lt", 0, mul(value, -1), value)


def _plus_odd_powers(x: TileExpr, square: TileExpr, coefficients: tuple[float, ...]) -> TileExpr:
    """x + x^3 * (a polynomial in x^2)."""
    return add(x, mul(mul(x, square), polynomial(square, *coefficients)))


def _tan(x: TileExpr) -> TileExpr:
    """sin / cos of what is left after quarter turns; after an odd number of them -cos / sin."""
    turns = un("round", mul(x, 2 / math.pi))
    rest = x
    for part in PI_PARTS:
        rest = sub(rest, mul(turns, part / 2))
    square = mul(rest, rest)
    sine, cosine = _plus_odd_powers(rest, square, SINE), polynomial(square, *COSINE)
    odd = sub(turns, mul(un("floor", mul(turns, 0.5)), 2))
    return where(odd, "eq", 1, div(mul(cosine, -1), sine), div(sine, cosine))


def _atan(x: TileExpr) -> TileExpr:
    def of_size(size: TileExpr) -> TileExpr:
        far = where(size, "gt", 0.4142135623730950, div(sub(size, 1), add(size, 1)), size)
        rest = where(size, "gt", 2.414213562373095, div(-1, size), far)
        angle = where(size, "gt", 2.414213562373095, math.pi / 2, where(size, "gt", 0.4142135623730950, math.pi / 4, 0))
        return add(angle, _plus_odd_powers(rest, mul(rest, rest), ATAN))

    return _odd(x, of_size)


def _to_one(x: TileExpr) -> TileExpr:
    """atan(x) of 0 <= x <= 1."""
    beyond = where(x, "gt", 0.4142135623730950, math.pi / 4, 0)
    rest = where(x, "gt", 0.4142135623730950, div(sub(x, 1), add(x, 1)), x)
    return add(beyond, _plus_odd_powers(rest, mul(rest, rest), ATAN))


def _by_size(x: TileExpr, y: TileExpr) -> tuple[TileExpr, TileExpr]:
    """The larger size of two numbers, and the other size in parts of it, at most 1."""
    sizes = un("abs", x), un("abs", y)
    most, least = kn.Binary("max", *sizes), kn.Binary("min", *sizes)
    same = where(most, "eq", 0, 0, 1)
    return most, where(most, "eq", least, same, div(least, most))


def atan2(y: TileExpr, x: TileExpr) -> TileExpr:
    """By the angle to the nearest axis: no quotient is beyond 1. Signs are factors, so that the angle stands here once."""
    acute = _turned(un("abs", y), "gt", un("abs", x), math.pi / 2, _to_one(_by_size(x, y)[1]))
    return _turned(y, "lt", number(0), 0, _turned(x, "lt", number(0), math.pi, acute))


def _turned(a: TileExpr, op: str, b: TileExpr, turn: float, angle: TileExpr) -> TileExpr:
    """The angle, or `turn` less it where a is to b as `op` says."""
    signed = mul(angle, where(a, op, b, -1, 1))
    return add(where(a, op, b, turn, 0), signed) if turn else signed


def hypot(x: TileExpr, y: TileExpr) -> TileExpr:
    """most * sqrt(1 + (least / most)^2): no square is beyond what f32 holds. Beside an infinity anything is infinite."""
    most, ratio = _by_size(x, y)
    finite = mul(most, un("sqrt", add(mul(ratio, ratio), 1)))
    return where(un("abs", x), "eq", math.inf, math.inf, where(un("abs", y), "eq", math.inf, math.inf, finite))


def _asin_parts(size: TileExpr) -> TileExpr:
    """asin(size) up to a half; beyond that the angle a with asin(size) = pi / 2 - 2 a."""
    square = where(size, "gt", 0.5, mul(sub(1, size), 0.5), mul(size, size))
    return _plus_odd_powers(where(size, "gt", 0.5, un("sqrt", square), size), square, ASIN)


def _asin(x: TileExpr) -> TileExpr:
    def of_size(size: TileExpr) -> TileExpr:
        angle = _asin_parts(size)
        return where(size, "gt", 0.5, sub(math.pi / 2, mul(angle, 2)), angle)

    return _odd(x, of_size)


def _acos(x: TileExpr) -> TileExpr:
    size = un("abs", x)
    angle = _asin_parts(size)
    twice = mul(angle, 2)
    far = where(x, "gt", 0, twice, sub(math.pi, twice))
    return where(size, "gt", 0.5, far, sub(math.pi / 2, where(x, "lt", 0, mul(angle, -1), angle)))


def _halves(size: TileExpr) -> tuple[TileExpr, TileExpr]:
    """exp(size) / 2 and exp(-size) / 2, by the root of exp(size), which is finite where they are."""
    root = un("exp", mul(size, 0.5))
    return mul(mul(root, 0.5), root), div(div(0.5, root), root)


def _sinh(x: TileExpr) -> TileExpr:
    def of_size(size: TileExpr) -> TileExpr:
        series = _plus_odd_powers(size, mul(size, size), SINH)
        return where(size, "lt", 1, series, sub(*_halves(size)))

    return _odd(x, of_size)


def _cosh(x: TileExpr) -> TileExpr:
    return add(*_halves(un("abs", x)))


def _log10(x: TileExpr) -> TileExpr:
    return mul(un("ln", x), 1 / math.log(10))


def _log1p(x: TileExpr) -> TileExpr:
    """ln(1 + x), of a small x by the quotient that its rounding leaves as it is (Goldberg, theorem 4)."""
    sum = add(x, 1)
    less = sub(sum, 1)
    of_sum = mul(un("ln", sum), div(x, where(less, "eq", 0, 1, less)))
    return where(sum, "eq", math.inf, sum, where(less, "eq", 0, x, of_sum))


def _expm1(x: TileExpr) -> TileExpr:
    """exp(x) - 1, of an x near 0 by its series, whose terms fall below half a step of f32."""
    series = mul(x, polynomial(x, *(1 / math.factorial(n) for n in range(7, 0, -1))))
    return where(un("abs", x), "lt", 0.25, series, sub(un("exp", x), 1))


def _asinh(x: TileExpr) -> TileExpr:
    def of_size(size: TileExpr) -> TileExpr:
        square = mul(size, size)
        near = _log1p(add(size, div(square, add(un("sqrt", add(square, 1)), 1))))
        return where(size, "gt", LARGE, add(un("ln", size), math.log(2)), near)

    return _odd(x, of_size)


def _acosh(x: TileExpr) -> TileExpr:
    """By two roots: the product below them is above 0 for an x below -1, too."""
    less = sub(x, 1)
    near = _log1p(add(less, mul(un("sqrt", less), un("sqrt", add(less, 2)))))
    return where(x, "gt", LARGE, add(un("ln", x), math.log(2)), near)


def _atanh(x: TileExpr) -> TileExpr:
    return _odd(x, lambda size: mul(_log1p(div(mul(size, 2), sub(1, size))), 0.5))


FUNCTIONS: dict[str, Callable[[TileExpr], TileExpr]] = {
    "tan": _tan, "atan": _atan, "asin": _asin, "acos": _acos, "sinh": _sinh, "cosh": _cosh, "log10": _log10, "log1p": _log1p,
    "expm1": _expm1, "asinh": _asinh, "acosh": _acosh, "atanh": _atanh,
}  # fmt: skip
