"""Running error analysis: how far the result of an operation may lie from what was computed, from how far its operands may.

A *spread* goes with an array of shape s: an array of shape (2, *s) of bounds on |exact result - this one|, whose sum counts.
`spread[0]` is what elements may have in common (all off to the same side), `spread[1]` what is each element's own, as the
roundings of different numbers are. Only sums of many elements tell the two apart: own errors partly cancel (`CONFIDENCE`). An
infinite spread: roundings alone decide over the number. Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd
ed. 2002, sections 3.1 and 3.3 (running error analysis).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tile_eg.ir import accuracy as ac
from tile_eg.ir import arithmetic as ar
from tile_eg.ops.elementwise import BINARY, REDUCE, UNARY

Array = np.ndarray
EXACT_WHERE_EQUAL = ("add", "sub", "mul", "cast", *(f.name for f in UNARY.values() if f.native == "Cast"))
"""Operations that every schedule computes without error where the exact result is a number of the type."""


def exact(shape: tuple[int, ...]) -> Array:
    return np.zeros((2, *shape))


def total(spread: Array) -> Array:
    return spread[0] + spread[1]


def repeated(spread: Array, shape: tuple[int, ...]) -> Array:
    """The spread of an array that is broadcast to a shape: what was one element's own, its copies have in common."""
    if spread.shape[1:] == shape:
        return spread
    out = np.zeros((2, *shape))
    out[0] = np.broadcast_to(total(spread), shape)
    return out


def rounded(op: str, wide: Array, result: Array, spread: Array) -> Array:
    """The spread of `result`, which is `wide` (f64) after the operation's roundings to the result's type."""
    if result.dtype.kind in ar.WHOLE:
        return spread
    name = result.dtype.name
    size = np.where(np.isfinite(wide), np.abs(wide), 0.0) + total(spread)
    unit, least = ac.HALF_STEP[name], ac.SMALLEST_HALF_STEP[name]
    fresh = ac.HALF_STEPS.get(op, 1) * np.maximum(unit * size, least) + ac.HALF_STEPS_OF_ONE.get(op, 0) * unit
    if op in ("exp", "ln"):
        fresh += ac.FUNCTION_HALF_STEPS * ac.HALF_STEP["float32"] * size
    if op in EXACT_WHERE_EQUAL:
        fresh = np.where((wide == result.astype(np.float64)) & (total(spread) == 0), 0.0, fresh)
    out = np.stack([spread[0], spread[1] + fresh])
    return _overflowed(wide, result, out)


def _overflowed(wide: Array, result: Array, spread: Array) -> Array:
    """Nothing is known of a number that is infinite or not by a rounding; one that is infinite in any case is exact."""
    largest = ac.LARGEST[result.dtype.name]
    around = total(spread)
    size = np.abs(wide)
    certain = ~np.isfinite(wide) | (size - around > largest)
    unknown = ~certain & ~(size + around <= largest)
    shared = np.where(unknown, np.inf, np.where(certain & np.isfinite(around), 0.0, spread[0]))
    return np.stack([shared, np.where(certain | unknown, 0.0, spread[1])])


def unary(op: str, x: Array, spread: Array, result: Array) -> Array:
    """One function of each element: evaluated at both ends of what its operand may be. Whole numbers have no roundings."""
    if x.dtype.kind in ar.WHOLE:
        return _bits(spread)
    middle, radius = x.astype(np.float64), total(spread)
    if op in ("neg", "abs"):
        return spread.copy()
    if op == "relu":
        return _extreme("max", middle, np.zeros_like(middle), spread, np.zeros_like(spread))
    f = partial(UNARY[op].meaning, np)
    wide = f(middle)
    reach = radius
    if radius.any():
        reach = np.maximum(_apart(f(middle + radius), wide), _apart(f(middle - radius), wide))
    if op in ("sin", "cos"):
        reach = np.where(np.abs(middle) + radius > ac.TURNS, np.inf, np.minimum(radius, 2.0))
    if op == "tan":
        reach = _tangent(middle, wide, radius)
    if op in ("reciprocal", "rsqrt"):  # of zero: a zero of either sign
        reach = np.where(np.abs(middle) <= radius, np.inf, reach)
    return rounded(op, wide, result, _divided(reach, spread, radius))


def _tangent(middle: Array, wide: Array, radius: Array) -> Array:
    """What is left of a number behind whole turns is off as well, and counts for most where the tangent is steep."""
    off = radius + ac.HALF_STEPS_OF_ONE["tan"] * ac.HALF_STEP["float32"]
    near = (np.abs(middle) + radius > ac.TURNS) | (np.abs(np.cos(middle)) <= 2 * off)
    return np.where(near, np.inf, 2 * off * (1 + wide * wide))


def _apart(a: Array, b: Array) -> Array:
    """|a - b|; 0 where both are the same infinity or both are none, inf where one of them is no number."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b), np.inf))


def _divided(reach: Array, spread: Array, radius: Array) -> Array:
    """A reach in the proportion of the operand's common and own errors."""
    finite = np.isfinite(reach) & np.isfinite(radius) & (radius > 0)
    own = np.where(finite, reach, 0.0) * np.where(finite, spread[1], 0.0) / np.where(finite, radius, 1.0)
    return np.stack([np.where(finite, reach - own, reach), own])


def _bits(*spreads: Array) -> Array:
    """What roundings have done to whole numbers may change every bit of what is computed from them."""
    found = sum(total(s) for s in spreads)
    return np.stack([np.where(found > 0, np.inf, 0.0), np.zeros_like(found)])


def binary(op: str, x: Array, y: Array, sx: Array, sy: Array, result: Array) -> Array:
    """Spreads are of the operands; what is smaller than the result is repeated."""
    if result.dtype.kind in ar.WHOLE and (op not in ("add", "sub", "mul", "max", "min") or not (sx.any() or sy.any())):
        return _bits(repeated(sx, result.shape), repeated(sy, result.shape))
    a, b = np.broadcast_arrays(x.astype(np.float64), y.astype(np.float64))
    sx, sy = repeated(sx, result.shape), repeated(sy, result.shape)
    if op in ("max", "min"):
        return _extreme(op, a, b, sx, sy)
    if op in _OF_POINTS:
        return rounded(op, BINARY[op].meaning(np, a, b), result, _OF_POINTS[op](a, b, sx, sy))
    if op == "leaky_relu":
        return rounded(op, BINARY[op].meaning(np, a, b), result, sx + times(np.abs(a), sy) + times(np.abs(b), sx))
    wide = BINARY[op].meaning(np, a, b)
    out = _arithmetic(op, np.abs(wide), np.abs(a), np.abs(b), sx, sy)
    out = np.where(_without_doubt(op, a, b, total(sx), total(sy)), 0.0, np.where(np.isnan(out), np.inf, out))
    return rounded(op, wide, result, out)


def _turned(y: Array, x: Array, sy: Array, sx: Array) -> Array:
    """How far the angle of a point turns: any angle, where the point may be 0 or lie on either side of the cut."""
    ty, tx = total(sy), total(sx)
    room = np.hypot(x, y) - tx - ty
    cut = (ty > 0) & (np.abs(y) <= ty) & (x - tx < 0)
    known = (tx + ty == 0) | np.isnan(x) | np.isnan(y)
    reach = np.where(cut | ~(room > 0), np.inf, (tx + ty) / np.where(room > 0, room, 1.0))
    return np.stack([np.where(known, 0.0, reach), np.zeros_like(reach)])


_OF_POINTS: dict[str, Callable[..., Array]] = {"atan2": _turned, "hypot": lambda a, b, sx, sy: sx + sy}


def _arithmetic(op: str, wide: Array, a: Array, b: Array, sx: Array, sy: Array) -> Array:
    """What the operands' errors do to a sum, a product or a quotient, by magnitudes."""
    if op in ("add", "sub"):
        return sx + sy
    if op == "pow":
        return _power(wide, a, b, sx, sy)
    if op == "mul":
        out = times(a, sy) + times(b, sx)
        out[0] += times(total(sx), total(sy))
        return out
    room = b - total(sy)
    shared, own = (sx + times(wide, sy)) / np.where(room > 0, room, 1.0)
    return np.stack([np.where(room > 0, shared, np.inf), own])  # else zero is among what the divisor may be, so both signs are


def _power(wide: Array, a: Array, b: Array, sx: Array, sy: Array) -> Array:
    """By the logarithm: what an error of the base or of the exponent does, in the first order; infinite where it is large."""
    tx, ty = total(sx), total(sy)
    logs = np.where(a > 0, np.abs(np.log(a)), np.inf)
    off = np.where(tx > 0, b * tx / np.maximum(a - tx, 0), 0.0) + np.where(ty > 0, logs * ty, 0.0)
    reach = np.where(off > 0.5, np.inf, np.where(off > 0, wide * 2 * off, 0.0))
    return np.stack([reach, np.zeros_like(reach)])


def _without_doubt(op: str, a: Array, b: Array, tx: Array, ty: Array) -> Array:
    """Where an operand is NaN or infinite, and so is the result (or 0, of a division), whatever else roundings do."""
    known = np.isfinite(tx) & np.isfinite(ty)
    none, x_infinite, y_infinite = np.isnan(a) | np.isnan(b), np.isinf(a), np.isinf(b)
    if op in ("mul", "div"):
        x_infinite &= np.abs(b) > ty
    if op == "mul":
        y_infinite &= np.abs(a) > tx
    return known & (none | x_infinite | y_infinite)


def times(x: Array, spread: Array) -> Array:
    """A product in which nothing times an infinity is nothing."""
    return np.where((spread == 0) | (x == 0), 0.0, x * spread)


def _extreme(op: str, a: Array, b: Array, sx: Array, sy: Array) -> Array:
    """The spread of the one that is chosen, where it is so in any case."""
    f = partial(BINARY[op].meaning, np)
    tx, ty = total(sx), total(sy)
    wide = f(a, b)
    reach = np.maximum(_apart(f(a + tx, b + ty), wide), _apart(f(a - tx, b - ty), wide))
    clear = _apart(a, b) > tx + ty
    chosen = np.where(a == wide, sx, sy)
    either = np.stack([reach, np.zeros_like(reach)])
    return np.where(clear, chosen, either)


def either(near: Array, x: Array, y: Array, sx: Array, sy: Array, spread: Array) -> Array:
    """The spread of a choice between x and y, which is `spread` but where the comparison is near: there it may be either."""
    if not np.any(near):
        return spread
    shape = spread.shape[1:]
    apart = _apart(*(np.broadcast_to(z.astype(np.float64), shape) for z in (x, y)))
    reach = np.maximum(*(total(repeated(z, shape)) for z in (sx, sy))) + apart
    return np.where(near, np.stack([reach, np.zeros(shape)]), spread)


def close(a: Array, b: Array, sa: Array, sb: Array) -> Array:
    """Where roundings may decide a comparison."""
    radius = total(sa) + total(sb)
    with np.errstate(invalid="ignore"):
        near = np.abs(a.astype(np.float64) - b.astype(np.float64)) <= radius
    return (near & (radius > 0)) | np.isinf(radius)


def cast(x: Array, spread: Array, result: Array) -> Array:
    wide = x.astype(np.float64)
    if result.dtype.kind in ar.WHOLE and x.dtype.kind not in ar.WHOLE:
        radius = total(spread)
        up, down = (ar.cast(wide + r, result.dtype).astype(np.float64) for r in (radius, -radius))
        there = result.astype(np.float64)
        return np.stack([np.maximum(np.abs(up - there), np.abs(down - there)), np.zeros_like(there)])
    if result.dtype == x.dtype or result.dtype == np.float64:
        return spread.copy()
    return rounded("cast", wide, result, spread)


def reduce(op: str, x: Array, spread: Array, axis: int, result: Array) -> Array:
    """A reduction along an axis of x, in any order, of floats in f32."""
    if x.dtype.kind in ar.WHOLE:
        return _bits(np.stack([np.asarray(np.sum(part, axis=axis)) for part in spread]))
    if op != "sum":
        f, wide, radius = partial(REDUCE[op].meaning, np), x.astype(np.float64), total(spread)
        middle = f(wide, axis=axis)
        reach = np.maximum(_apart(f(wide + radius, axis=axis), middle), _apart(f(wide - radius, axis=axis), middle))
        return np.stack([np.asarray(reach), np.zeros_like(reach)])
    wide = x.astype(np.float64)
    size = np.where(np.isfinite(wide), np.abs(wide), 0.0) + total(spread)
    shared = np.sum(spread[0], axis=axis) + _added(np.sum(spread[1], axis=axis), np.sum(spread[1] ** 2, axis=axis))
    out = np.stack([shared, sum_error(x.shape[axis], np.sum(size, axis=axis))])
    return rounded("cast", np.asarray(np.sum(wide, axis=axis)), result, out)


def _added(sums: Array, squares: Array) -> Array:
    """Own errors of many elements together, by their sum and the sum of their squares."""
    return np.minimum(sums, ac.CONFIDENCE * np.sqrt(squares))


def sum_error(n: int, size: Array) -> Array:
    """What the roundings of a sum of n numbers in f32 do, by the sum of their magnitudes."""
    return np.asarray(np.where(size <= ac.LARGEST["float32"], ac.sum_half_steps(n) * ac.HALF_STEP["float32"] * size, np.inf))


def matmul(a: Array, b: Array, sa: Array, sb: Array, result: Array) -> Array:
    """A product of (m, k) and (k, n), added in any order in f32; of whole numbers without roundings."""
    x, y = (np.abs(np.where(np.isfinite(z), z, 0).astype(np.float32)) for z in (a.astype(np.float32), b.astype(np.float32)))
    out = exact(result.shape)
    if sa.any():
        out[0] += _carried(sa, y)
    if sb.any():
        out[0] += _carried(sb.swapaxes(-1, -2), x.T).T
    if sa.any() and sb.any():
        out[0] += _times_matrix(total(sa), total(sb))
    if result.dtype.kind not in ar.WHOLE:
        size = (x @ y).astype(np.float64) + total(out)
        out[1] = sum_error(a.shape[1] + 1, size)  # one more: products of f32 are rounded, too
    return out


def _carried(spread: Array, other: Array) -> Array:
    """What the errors of the left operand do to a product with `other` (magnitudes)."""
    return _times_matrix(spread[0], other) + _added(
        _times_matrix(spread[1], other), _times_matrix(spread[1] ** 2, other.astype(np.float64) ** 2)
    )


def _times_matrix(x: Array, y: Array) -> Array:
    """x @ y of bounds; an infinite one makes its row or column infinite."""
    out = np.where(np.isfinite(x), x, 0.0) @ np.where(np.isfinite(y), y, 0.0)
    out[~np.isfinite(x).all(axis=1)] = np.inf
    out[:, ~np.isfinite(y).all(axis=0)] = np.inf
    return out
