"""More functions of NumPy's that are compositions of others: of signs and of what is no number, remainders, means, products."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, pi
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.composed import full_like, number
from tile_eg.frontend.tensor.einsum import einsum
from tile_eg.frontend.tensor.values import Value
from tile_eg.ops.types import F32

Axis = int | Sequence[int] | None


def _as_floats(x: Value, span: Span | None) -> Value:
    return v.cast(F32, x, span) if x.truth or (x.dtype is not None and x.dtype.whole) else x


def _is_whole(x: Value) -> bool:
    return x.dtype is not None and x.dtype.whole


def _below(x: Value, span: Span | None) -> Value:
    return v.compare("lt", x, number(0), span)


def _nan(x: Value, span: Span | None) -> Value:
    return v.compare("ne", x, x, span)


# ---- element by element ----


def times(factor: float, x: Value, span: Span | None = None) -> Value:
    return v.binary("mul", _as_floats(x, span), number(factor), span)


def exp10(x: Value, span: Span | None = None) -> Value:
    return v.unary("exp", times(log(10), x, span), span)


def cbrt(x: Value, span: Span | None = None) -> Value:
    x = _as_floats(x, span)
    return copysign(v.binary("pow", v.unary("abs", x, span), number(1 / 3), span), x, span)


def copysign(x: Value, y: Value, span: Span | None = None) -> Value:
    """The size of x with the sign of y; that of a zero does not count."""
    size = v.unary("abs", _as_floats(x, span), span)
    return v.where(_below(y, span), v.unary("neg", size, span), size, span)


def heaviside(x: Value, y: Value, span: Span | None = None) -> Value:
    """0 below 0, 1 above it, and y there."""
    x = _as_floats(x, span)
    above = v.where(v.compare("gt", x, number(0), span), number(1.0), v.where(_below(x, span), number(0.0), x, span), span)
    return v.where(v.compare("eq", x, number(0), span), y, above, span)


def sinc(x: Value, span: Span | None = None) -> Value:
    angle, none = times(pi, x, span), v.compare("eq", x, number(0), span)
    quotient = v.binary("div", v.unary("sin", angle, span), v.where(none, number(1.0), angle, span), span)
    return v.where(none, number(1.0), quotient, span)


def nan_to_num(
    x: Value, nan: Value | None = None, posinf: Value | None = None, neginf: Value | None = None, span: Span | None = None
) -> Value:
    """x with a number in the place of NaN, and the largest numbers of its type in that of infinities."""
    if x.truth or _is_whole(x):
        return x
    most = {"f16": 65504.0, "bf16": 3.3895313892515355e38}.get(str(x.dtype), 3.4028234663852886e38)
    found = v.where(_nan(x, span), number(0.0) if nan is None else nan, x, span)
    for infinite, given in ((inf, posinf), (-inf, neginf)):
        there = number(most if infinite > 0 else -most) if given is None else given
        found = v.where(v.compare("eq", x, number(infinite), span), there, found, span)
    return found


def known_of(op: str, x: Value, y: Value, span: Span | None = None) -> Value:
    """The larger or the smaller of two, or the one that is a number."""
    both = v.binary(op, x, y, span)
    return both if _is_whole(both) else v.where(_nan(x, span), y, v.where(_nan(y, span), x, both, span), span)


def fmod(x: Value, y: Value, span: Span | None = None) -> Value:
    """The remainder with the sign of x."""
    both = v.binary("add", x, y, span)
    if _is_whole(both):
        rest = v.quotient("%", x, y, span)
        none = v.compare("eq", rest, number(0), span)
        same = v.compare("eq", _below(x, span), _below(y, span), span)
        return v.where(v.binary("or", none, same, span), rest, v.binary("sub", rest, y, span), span)
    down = v.unary("trunc", v.binary("div", x, y, span), span)
    rest = v.binary("sub", x, v.binary("mul", down, y, span), span)
    ends = (v.binary(op, x, number(0.0), span) for op in ("min", "max"))
    return v.binary("min", v.binary("max", rest, next(ends), span), next(ends), span)


# ---- over axes ----


def average(x: Value, axis: Axis = None, weights: Value | None = None, keepdims: bool = False, span: Span | None = None) -> Value:
    """The mean; with weights of x's shape, or of that of one axis, the sum of products over that of the weights."""
    if weights is None:
        return v.reduce("mean", x, axis, keepdims, span)
    if not isinstance(weights, Value):
        raise TileError(f"weights are a tensor, not {weights}", span, help="average(x, axis=0, weights=w)")
    if len(weights.shape) == 1 and len(x.shape) > 1 and isinstance(axis, int):
        behind = len(x.shape) - 1 - v.axis_of(axis, x, span)
        weights = v.window(weights, [v.REST, *[v.NEW_AXIS] * behind], span)
    elif weights.shape != x.shape:
        what = f"weights of {list(weights.shape)} are neither of the shape {list(x.shape)} nor of one axis"
        raise TileError(what, span, help="one axis: average(x, axis=0, weights=w)")
    weights = v.binary("mul", weights, full_like(_as_floats(x, span), number(1.0), span), span)
    of_both = v.reduce("sum", v.binary("mul", x, weights, span), axis, keepdims, span)
    return v.binary("div", of_both, v.reduce("sum", weights, axis, keepdims, span), span)


def count_nonzero(x: Value, axis: Axis = None, keepdims: bool = False, span: Span | None = None) -> Value:
    return v.reduce("sum", v.truth(x, span), axis, keepdims, span)


def nansum(x: Value, axis: Axis = None, keepdims: bool = False, span: Span | None = None) -> Value:
    """The sum of what is a number."""
    known = x if x.truth or _is_whole(x) else v.where(_nan(x, span), number(0.0), x, span)
    return v.reduce("sum", known, axis, keepdims, span)


def nanmean(x: Value, axis: Axis = None, keepdims: bool = False, span: Span | None = None) -> Value:
    """The mean of what is a number; NaN where nothing is."""
    there = v.reduce("sum", v.compare("eq", x, x, span), axis, keepdims, span)
    return v.binary("div", nansum(_as_floats(x, span), axis, keepdims, span), v.cast(F32, there, span), span)


# ---- products ----


def vdot(a: Value, b: Value, span: Span | None = None) -> Value:
    """The sum of the products of all elements."""
    return v.matmul(v.reshape(a, (-1,), span), v.reshape(b, (-1,), span), span)


def vecdot(a: Value, b: Value, axis: int = -1, span: Span | None = None) -> Value:
    return v.reduce("sum", v.binary("mul", a, b, span), axis, False, span)


def tensordot(a: Value, b: Value, axes: Any = 2, span: Span | None = None) -> Value:
    """Sums over the last axes of a and the first ones of b, or over those that two lists name."""
    summed = _of_each(axes, a, b, span)
    sizes = [[x.shape[n] for n in own] for own, x in zip(summed, (a, b), strict=False)]
    if len(sizes) != 2 or sizes[0] != sizes[1] or any(len(set(own)) < len(own) for own in summed):
        help = "tensordot(x, y, axes=1), or axes=((1, 2), (0, 1)): axes of x, and of y"
        raise TileError(f"`tensordot` sums over axes of one size, not {axes} of {a} and {b}", span, help=help)
    letters = [chr(97 + n) for n in range(len(a.shape) + len(b.shape))]
    left, right = letters[: len(a.shape)], letters[len(a.shape) :]
    for p, q in zip(*summed, strict=True):
        right[q] = left[p]
    out = [c for c in (*left, *right) if c not in {left[p] for p in summed[0]}]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", a, b, span=span)


def _of_each(axes: Any, a: Value, b: Value, span: Span | None) -> list[list[int]]:
    if isinstance(axes, int):
        axes = range(len(a.shape) - axes, len(a.shape)), range(axes)
    if not isinstance(axes, list | tuple | range):
        raise TileError(f"`tensordot` takes a number of axes, or two lists of them, not {axes}", span)
    given = [(p,) if isinstance(p, int) else p for p in axes]
    return [[v.axis_of(n, x, span) for n in own] for own, x in zip(given, (a, b), strict=False)]
