"""Functions of NumPy's and torch's that are compositions of others: elementwise ones, norms, and those that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import inf, log, prod
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.gathers import part
from tile_eg.frontend.tensor.joins import join
from tile_eg.frontend.tensor.values import NEW_AXIS, Slice, Value
from tile_eg.ops.types import F32, DType

Axis = int | Sequence[int] | None
Option = Any
"""A plain value that an author writes behind the tensors: checked here."""


def number(x: float, span: Span | None = None) -> Value:
    return v.number(x, span)


# ---- element by element ----


def exp2(x: Value, span: Span | None = None) -> Value:
    return v.unary("exp", v.binary("mul", x, number(log(2)), span), span)


def log2(x: Value, span: Span | None = None) -> Value:
    return v.binary("mul", v.unary("ln", x, span), number(1 / log(2)), span)


def square(x: Value, span: Span | None = None) -> Value:
    return v.binary("mul", x, x, span)


def clip(x: Value, low: Value | None = None, high: Value | None = None, span: Span | None = None) -> Value:
    if low is not None:
        x = v.binary("max", x, low, span)
    return x if high is None else v.binary("min", x, high, span)


def isinf(x: Value, span: Span | None = None) -> Value:
    return v.compare("eq", v.unary("abs", x, span), number(inf), span)


def isfinite(x: Value, span: Span | None = None) -> Value:
    return v.compare("lt", v.unary("abs", x, span), number(inf), span)


def logaddexp(x: Value, y: Value, span: Span | None = None) -> Value:
    """The larger one and what the other adds: of two that are the same, infinities among them, ln 2."""
    most, least = v.binary("max", x, y, span), v.binary("min", x, y, span)
    less = v.where(v.compare("eq", x, y, span), number(0.0), v.binary("sub", least, most, span), span)
    return v.binary("add", most, v.unary("log1p", v.unary("exp", less, span), span), span)


def converted(dtype: DType, x: Value, span: Span | None = None) -> Value:
    """x as NumPy converts it: whole numbers have its fraction cut off."""
    if not dtype.whole or x.truth or (x.dtype is not None and x.dtype.whole):
        return v.cast(dtype, x, span)
    if x.op == "number" and isinstance(x.args[0], int | float):
        if not math.isfinite(x.args[0]):
            raise TileError(f"{dtype} has no {x.args[0]}", span)
        return v.cast(dtype, number(int(x.args[0])), span)
    return v.cast(dtype, v.unary("trunc", x, span), span)


def full_like(x: Value, value: Value, span: Span | None = None) -> Value:
    if x.truth:
        return v.repeated(v.truth(value, span), x.shape, span)
    return v.repeated(value if x.dtype is None else converted(x.dtype, value, span), x.shape, span)


def zeros_like(x: Value, span: Span | None = None) -> Value:
    return full_like(x, number(0.0), span)


def ones_like(x: Value, span: Span | None = None) -> Value:
    return full_like(x, number(1.0), span)


# ---- over axes ----


def all_of(x: Value, axis: Axis = None, keepdims: bool = False, span: Span | None = None) -> Value:
    return v.reduce("min", v.truth(x, span), axis, keepdims, span)


def any_of(x: Value, axis: Axis = None, keepdims: bool = False, span: Span | None = None) -> Value:
    return v.reduce("max", v.truth(x, span), axis, keepdims, span)


def logical(op: str, x: Value, y: Value, span: Span | None = None) -> Value:
    """NumPy's `and`, `or` and `xor` of what is not 0."""
    return v.binary(op, v.truth(x, span), v.truth(y, span), span)


def logical_not(x: Value, span: Span | None = None) -> Value:
    return v.unary("not", v.truth(x, span), span)


def variance(x: Value, axis: Axis = None, keepdims: bool = False, ddof: int = 0, span: Span | None = None) -> Value:
    """The squares of what differs from the mean, over n - ddof."""
    less = v.binary("sub", x, v.reduce("mean", x, axis, True, span), span)
    found = v.reduce("mean", square(less, span), axis, keepdims, span)
    along = range(len(x.shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    n = prod(x.shape[v.axis_of(a, x, span)] for a in along)
    if not ddof:
        return found
    if not 0 < ddof < n:
        raise TileError(f"a variance of {n} numbers is over {n} less 0 to {n - 1}, not less {ddof}", span)
    return v.binary("mul", found, number(n / (n - ddof)), span)


def deviation(x: Value, axis: Axis = None, keepdims: bool = False, ddof: int = 0, span: Span | None = None) -> Value:
    return v.unary("sqrt", variance(x, axis, keepdims, ddof, span), span)


def norm(x: Value, ord: Option = None, axis: Axis = None, keepdims: bool = False, span: Span | None = None) -> Value:
    """The square root of the sum of squares; of `ord` 1 the sum of magnitudes, of inf the largest one."""
    if ord not in (None, "fro", 1, 2, inf) or (ord not in (None, "fro") and len(x.shape) > 1 and not isinstance(axis, int)):
        help = "norm(x, axis=-1) is of vectors, norm(x) of all elements"
        raise TileError(f"a norm is of order 2, and of vectors along one axis also 1 or inf, not {ord}", span, help=help)
    x = v.cast(F32, x, span) if x.truth or (x.dtype is not None and x.dtype.whole) else x
    if ord in (1, inf):
        return v.reduce("sum" if ord == 1 else "max", v.unary("abs", x, span), axis, keepdims, span)
    return v.unary("sqrt", v.reduce("sum", square(x, span), axis, keepdims, span), span)


def spread(x: Value, axis: Axis = None, keepdims: bool = False, span: Span | None = None) -> Value:
    return v.binary("sub", v.reduce("max", x, axis, keepdims, span), v.reduce("min", x, axis, keepdims, span), span)


# ---- products ----


def outer(a: Value, b: Value, span: Span | None = None) -> Value:
    rows, columns = v.reshape(a, (-1,), span), v.reshape(b, (-1,), span)
    return v.binary("mul", v.window(rows, [Slice(), NEW_AXIS], span), columns, span)


def dot(a: Value, b: Value, span: Span | None = None) -> Value:
    """As NumPy's, of numbers, vectors and matrices."""
    if not a.shape or not b.shape:
        return v.binary("mul", a, b, span)
    if len(b.shape) > 2:
        raise TileError(f"`dot` takes vectors and matrices, not {b}", span, help="a batch of products is a @ b")
    return v.matmul(a, b, span)


def inner(a: Value, b: Value, span: Span | None = None) -> Value:
    """Sums along the last axes of both."""
    if not a.shape or not b.shape:
        return v.binary("mul", a, b, span)
    if len(b.shape) > 2:
        raise TileError(f"`inner` takes vectors and matrices, not {b}", span, help="a batch of products is a @ b.mT")
    return v.matmul(a, b if len(b.shape) == 1 else v.permute(b, (1, 0), span), span)


# ---- axes ----


def expand_dims(x: Value, axis: int, span: Span | None = None) -> Value:
    rank = len(x.shape) + 1
    if not -rank <= axis < rank:
        raise TileError(f"{x} has no room for an axis {axis}", span, help=f"axes are 0 to {rank - 1}, or -1 to {-rank}")
    return v.window(x, [*[Slice()] * (axis % rank), NEW_AXIS], span)


def squeeze(x: Value, axis: Axis = None, span: Span | None = None) -> Value:
    given = (axis,) if isinstance(axis, int) else axis
    gone = [a for a, n in enumerate(x.shape) if n == 1] if given is None else [v.axis_of(a, x, span) for a in given]
    if wide := [a for a in gone if x.shape[a] != 1]:
        raise TileError(f"axis {wide[0]} of {x} is not of size 1", span)
    return v.reshape(x, [n for a, n in enumerate(x.shape) if a not in gone], span)


def flattened(x: Value, start: int = 0, end: int = -1, span: Span | None = None) -> Value:
    """The axes from `start` to `end` as one."""
    if not x.shape:
        return v.reshape(x, (1,), span)
    first, last = v.axis_of(start, x, span), v.axis_of(end, x, span)
    return v.reshape(x, (*x.shape[:first], prod(x.shape[first : last + 1]), *x.shape[last + 1 :]), span)


def moveaxis(x: Value, source: int, to: int, span: Span | None = None) -> Value:
    p, q = v.axis_of(source, x, span), v.axis_of(to, x, span)
    order = [a for a in range(len(x.shape)) if a != p]
    order.insert(q, p)
    return v.permute(x, order, span)


def beside(*parts: Value, span: Span | None = None) -> Value:
    """One beside the other: along columns, of vectors along their axis."""
    return join(parts, 0 if parts and len(parts[0].shape) == 1 else 1, span)


def below(*parts: Value, span: Span | None = None) -> Value:
    """One below the other; a vector is a row."""
    return join([expand_dims(p, 0, span) if len(p.shape) == 1 else p for p in parts], 0, span)


# ---- where elements lie ----


def stack(*parts: Value, axis: int = 0, span: Span | None = None) -> Value:
    if not parts:
        raise TileError("there is nothing to stack", span)
    return join([expand_dims(p, axis, span) for p in parts], axis, span)


def flip(x: Value, axis: Axis = None, span: Span | None = None) -> Value:
    along = range(len(x.shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    turned = {v.axis_of(a, x, span) for a in along}
    return v.window(x, [Slice(None, None, -1 if a in turned else 1) for a in range(len(x.shape))], span)


def roll(x: Value, shift: int, axis: int | None = None, span: Span | None = None) -> Value:
    if axis is None:
        return v.reshape(roll(v.reshape(x, (-1,), span), shift, 0, span), x.shape, span)
    if not isinstance(axis, int):
        raise TileError("`roll` moves along one axis", span, help="roll(roll(x, 1, 0), 2, 1) moves along two")
    at = v.axis_of(axis, x, span)
    size = x.shape[at]
    first = -shift % size if size else 0
    ends = [Slice()] * at
    return join([v.window(x, [*ends, s], span) for s in (Slice(first), Slice(0, first))], at, span) if first else x


def repeat(x: Value, count: int, axis: int | None = None, span: Span | None = None) -> Value:
    """Each element so many times, behind each other."""
    if count < 1:
        raise TileError("`repeat` takes a number of times from 1 on", span)
    if axis is None:
        x, axis = v.reshape(x, (-1,), span), 0
    at = v.axis_of(axis, x, span)
    more = v.window(x, [*[Slice()] * (at + 1), NEW_AXIS], span)
    wide = v.repeated(more, (*x.shape[: at + 1], count, *x.shape[at + 1 :]), span)
    return v.reshape(wide, (*x.shape[:at], x.shape[at] * count, *x.shape[at + 1 :]), span)


def tiled(x: Value, *counts: Any, span: Span | None = None) -> Value:
    """The whole so many times along each axis."""
    times = list(counts[0] if len(counts) == 1 and isinstance(counts[0], list | tuple) else counts)
    if not all(isinstance(n, int) and n >= 1 for n in times):
        raise TileError("`tile` takes a whole number of times from 1 on for each axis", span)
    rank = max(len(times), len(x.shape))
    times, shape = [1] * (rank - len(times)) + times, [1] * (rank - len(x.shape)) + list(x.shape)
    apart = v.reshape(x, [n for d in shape for n in (1, d)], span)
    wide = v.repeated(apart, [n for pair in zip(times, shape, strict=True) for n in pair], span)
    return v.reshape(wide, [t * d for t, d in zip(times, shape, strict=True)], span)


def pad(x: Value, widths: Option, mode: str = "constant", constant_values: Option = 0.0, span: Span | None = None) -> Value:
    """x between elements that are all the same: `widths` is how many before and behind, of each axis or of all."""
    if mode != "constant" or not isinstance(constant_values, int | float):
        help = "pad(x, ((0, 0), (1, 2))) puts zeros around, constant_values=c that number"
        raise TileError("`pad` puts one number around a tensor", span, help=help)
    pairs = _widths(x, widths, span)
    for axis, (before, behind) in enumerate(pairs):
        around = [_block(x, axis, n, constant_values, span) for n in (before, behind)]
        x = join([p for p in (around[0], x, around[1]) if p is not None], axis, span)
    return x


def _widths(x: Value, widths: Option, span: Span | None) -> list[tuple[int, int]]:
    given = [widths] * 2 if isinstance(widths, int) else list(widths) if isinstance(widths, list | tuple) else []
    if len(given) == 2 and all(isinstance(n, int) for n in given):
        given = [tuple(given)] * len(x.shape)
    pairs = [tuple(p) if isinstance(p, list | tuple) else (p, p) for p in given]
    if len(pairs) != len(x.shape) or not all(len(p) == 2 and all(isinstance(n, int) and n >= 0 for n in p) for p in pairs):
        help = "pad(x, ((1, 1), (0, 2))): before and behind along each axis"
        raise TileError(f"`pad` takes two whole numbers for each axis of {x}", span, help=help)
    return [(p[0], p[1]) for p in pairs]


def _block(x: Value, axis: int, size: int, value: float, span: Span | None) -> Value | None:
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    if not size:
        return None
    if x.truth:
        return v.truth(v.repeated(number(value, span), shape, span), span)
    dtype = x.dtype or F32
    return v.repeated(converted(dtype, number(value, span), span), shape, span)


def diff(x: Value, n: int = 1, axis: int = -1, span: Span | None = None) -> Value:
    at = v.axis_of(axis, x, span)
    if not 0 <= n < x.shape[at]:
        raise TileError(f"`diff` of {x} is taken 0 to {x.shape[at] - 1} times, not {n}", span)
    for _ in range(n):
        ends = [Slice()] * at
        x = v.binary("sub", v.window(x, [*ends, Slice(1)], span), v.window(x, [*ends, Slice(None, -1)], span), span)
    return x


def diagonal(x: Value, offset: int = 0, span: Span | None = None) -> Value:
    """The diagonal of the first two axes, or the one that lies `offset` columns to the right, as the last axis."""
    if len(x.shape) < 2:
        raise TileError(f"a diagonal is of a matrix, not of {x}", span)
    rows, columns = max(-offset, 0), max(offset, 0)
    size = min(x.shape[0] - rows, x.shape[1] - columns)
    if size < 1:
        raise TileError(f"{x} has no diagonal {offset}", span)
    at = [v.binary("add", v.arange(size, span), number(n), span) if n else v.arange(size, span) for n in (rows, columns)]
    found = part(x, at, span)
    return v.permute(found, [*range(1, len(found.shape)), 0], span) if len(found.shape) > 1 else found


def diag(x: Value, k: int = 0, span: Span | None = None) -> Value:
    """The diagonal of a matrix; of a vector the matrix that has it there, else 0."""
    if len(x.shape) != 1:
        return diagonal(x, k, span)
    n = x.shape[0] + abs(k)
    places = v.arange(n, span)
    at = v.window(places, [Slice(), NEW_AXIS], span)
    on = v.compare("eq", v.binary("add", at, number(k), span), places, span)
    around = pad(x, (max(k, 0), max(-k, 0)), span=span)
    return v.where(on, around, number(0), span)


def trace(x: Value, offset: int = 0, span: Span | None = None) -> Value:
    return v.reduce("sum", diagonal(x, offset, span), -1, False, span)


def take(x: Value, indices: Value, axis: int | None = None, span: Span | None = None) -> Value:
    if axis is None:
        x, axis = v.reshape(x, (-1,), span), 0
    (place,) = indices.args if indices.op == "number" else (indices,)
    if not isinstance(place, int | Value):
        raise TileError(f"an index is a whole number, not {indices}", span)
    return part(x, [*[Slice()] * v.axis_of(axis, x, span), place], span)


def take_along_axis(x: Value, indices: Value, axis: int, span: Span | None = None) -> Value:
    at, rank = v.axis_of(axis, x, span), len(x.shape)
    if len(indices.shape) != rank:
        raise TileError(f"`take_along_axis` takes as many axes of indices as {x} has, not {indices}", span)
    own: list[Value] = []
    for a, n in enumerate(x.shape):
        behind = [NEW_AXIS] * (rank - 1 - a)
        own.append(indices if a == at else v.window(v.arange(n, span), [Slice(), *behind], span))
    return part(x, own, span)


def split(x: Value, sections: Option, axis: int = 0, span: Span | None = None) -> tuple[Value, ...]:
    """Parts of one size, or those between the places in a list."""
    at = v.axis_of(axis, x, span)
    size = x.shape[at]
    if isinstance(sections, int):
        if sections < 1 or size % sections or not size:
            help = "split(x, [3, 8]) cuts before 3 and before 8"
            raise TileError(f"an axis of {size} is not cut in {sections} parts of one size", span, help=help)
        sections = range(size // sections, size, size // sections)
    if not isinstance(sections, list | tuple | range):
        raise TileError(f"`split` takes a number of parts or a list of places, not {sections}", span, help="split(x, 2, axis=1)")
    ends = [0, *sections, size]
    cuts = [Slice(a, b) for a, b in zip(ends, ends[1:], strict=False)]
    return tuple(v.window(x, [*[Slice()] * at, c], span) for c in cuts)


