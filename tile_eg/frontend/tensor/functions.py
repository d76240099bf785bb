"""The functions of tensor expressions, by name, for both languages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from math import pi, prod
from typing import Any

from tile_eg.errors import Span, TileError, did_you_mean
from tile_eg.frontend.hints import hint
from tile_eg.frontend.tensor import composed as co
from tile_eg.frontend.tensor import more_functions as more
from tile_eg.frontend.tensor import orders
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.einsum import einsum
from tile_eg.frontend.tensor.joins import join
from tile_eg.frontend.tensor.values import Value
from tile_eg.frontend.tensor.windows import conv1d, conv2d, conv3d, sliding_window_view
from tile_eg.ops import elementwise
from tile_eg.ops.types import DTYPES

Function = Callable[..., Value | tuple[Value, ...]]
"""Takes its operands, options by name, and `span`."""
Axis = int | Sequence[int] | None


def _softmax(x: Value, axis: Axis = -1, span: Span | None = None) -> Value:
    e = _exponentials(x, axis, span)
    return v.binary("div", e, v.reduce("sum", e, axis, True, span), span)


def _exponentials(x: Value, axis: Axis, span: Span | None) -> Value:
    return v.unary("exp", v.binary("sub", x, v.reduce("max", x, axis, True, span), span), span)


def _log_softmax(x: Value, axis: Axis = -1, span: Span | None = None) -> Value:
    less = v.binary("sub", x, v.reduce("max", x, axis, True, span), span)
    return v.binary("sub", less, v.unary("ln", v.reduce("sum", v.unary("exp", less, span), axis, True, span), span), span)


def _logsumexp(x: Value, axis: Axis = -1, keepdims: bool = False, span: Span | None = None) -> Value:
    greatest, total = (
        v.reduce("max", x, axis, keepdims, span),
        v.reduce("sum", _exponentials(x, axis, span), axis, keepdims, span),
    )
    return v.binary("add", greatest, v.unary("ln", total, span), span)


def _place(op: str, x: Value, axis: int | None = None, keepdims: bool = False, span: Span | None = None) -> Value:
    """The first place of the largest (smallest) element along an axis, of no axis that among all elements in a row: the least
    one whose element is that."""
    shape = x.shape if axis is None else x.shape[v.axis_of(axis, x, span) :][:1]
    places = v.reshape(v.arange(prod(shape), span), shape, span)
    behind = 0 if axis is None else len(x.shape) - 1 - v.axis_of(axis, x, span)
    places = v.window(places, [v.REST, *[v.NEW_AXIS] * behind], span)
    best = v.compare("eq", x, v.reduce(op, x, axis, True, span), span)
    return v.reduce("min", v.where(best, places, v.number(prod(shape)), span), axis, keepdims, span)


def _running(op: str, x: Value, axis: int | None = None, span: Span | None = None) -> Value:
    """Along an axis; NumPy's of no axis is that of all elements in a row."""
    if axis is None and len(x.shape) != 1:
        raise TileError(f"`{op}` of {x} goes along an axis", span, help=f"along its rows: {op}(x, axis=-1)")
    return v.scan(op, x, axis or 0, span)


def _silu(x: Value, span: Span | None = None) -> Value:
    return v.binary("mul", x, v.unary("sigmoid", x, span), span)


def _reduction(op: str, x: Value, axis: Axis = None, keepdims: bool = False, span: Span | None = None) -> Value:
    return v.reduce(op, x, axis, keepdims, span)


def _max_or_min(op: str, x: Value, y: Value | Axis = None, axis: Axis = None, keepdims: bool = False,
                span: Span | None = None) -> Value:  # fmt: skip
    """Of two values element by element; of one over its axes."""
    if isinstance(y, Value):
        return v.binary(op, x, y, span)
    return _reduction(op, x, axis if y is None else y, keepdims, span)


def _elementwise(op: str, x: Value, span: Span | None = None) -> Value:
    return v.unary(op, x, span)


def _pair(op: str, x: Value, y: Value, span: Span | None = None) -> Value:
    return v.binary(op, x, y, span)


def _isnan(x: Value, span: Span | None = None) -> Value:
    return v.compare("ne", x, x, span)


def _transpose(x: Value, *axes: Any, span: Span | None = None) -> Value:
    order = axes[0] if len(axes) == 1 and isinstance(axes[0], list | tuple) else axes
    return v.permute(x, order or None, span)


def turned(x: Value, name: str, span: Span | None = None) -> Value:
    """x.T, of a matrix or a vector, and x.mT, whose last two axes change places."""
    rank = len(x.shape)
    if name == "T" and rank > 2:
        raise TileError(f"`.T` of {x} would turn all its {rank} axes round", span, help="the last two change places with .mT")
    if name == "mT" and rank < 2:
        raise TileError(f"`.mT` needs two axes, {x} has {rank}", span)
    if rank < 2:
        return x
    return v.permute(x, [*range(rank - 2), rank - 1, rank - 2], span)


def _swapaxes(x: Value, a: int, b: int, span: Span | None = None) -> Value:
    p, q, order = v.axis_of(a, x, span), v.axis_of(b, x, span), list(range(len(x.shape)))
    order[p], order[q] = q, p
    return v.permute(x, order, span)


def _reshape(x: Value, *shape: Any, span: Span | None = None) -> Value:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
    return v.reshape(x, sizes, span)


def _broadcast_to(x: Value, *shape: Any, span: Span | None = None) -> Value:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
    return v.repeated(x, sizes, span)


def _concatenate(*parts: Value, axis: int = 0, span: Span | None = None) -> Value:
    return join(parts, axis, span)


def _tril(x: Value, k: int = 0, span: Span | None = None) -> Value:
    return _triangle("le", x, k, span)


def _triu(x: Value, k: int = 0, span: Span | None = None) -> Value:
    return _triangle("ge", x, k, span)


def _triangle(op: str, x: Value, k: int, span: Span | None) -> Value:
    """x where its column is to its row plus k as `op` says, else 0."""
    if len(x.shape) < 2:
        raise TileError(f"a triangle is part of a matrix, not of {x}", span)
    rows = v.window(v.arange(x.shape[-2], span), [v.Slice(), v.NEW_AXIS], span)
    condition = v.compare(op, v.arange(x.shape[-1], span), v.binary("add", rows, v.number(k), span), span)
    return v.where(condition, x, v.number(0), span)


UNARY = {w: partial(_elementwise, op.name) for op in elementwise.UNARY.values() for w in (*op.tile, *op.python)}
PAIRS = {op: partial(_pair, op) for op in elementwise.OF_TWO_FLOATS}
FUNCTIONS: dict[str, Function] = {
    **UNARY, **PAIRS,
    "softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp, "silu": _silu,
    "sum": partial(_reduction, "sum"), "mean": partial(_reduction, "mean"),
    "max": partial(_max_or_min, "max"), "min": partial(_max_or_min, "min"),
    "amax": partial(_reduction, "max"), "amin": partial(_reduction, "min"),
    "cumsum": partial(_running, "cumsum"), "cumprod": partial(_running, "cumprod"),
    "argmax": partial(_place, "max"), "argmin": partial(_place, "min"),
    "maximum": partial(_pair, "max"), "minimum": partial(_pair, "min"),
    "where": v.where, "select": v.where, "isnan": _isnan, "matmul": v.matmul, "tril": _tril, "triu": _triu,
    "transpose": _transpose, "swapaxes": _swapaxes, "reshape": _reshape,
    "broadcast_to": _broadcast_to, "concatenate": _concatenate,
    "exp2": co.exp2, "log2": co.log2, "square": co.square,
    "clip": co.clip, "clamp": co.clip, "isinf": co.isinf, "isfinite": co.isfinite, "logaddexp": co.logaddexp,
    "zeros_like": co.zeros_like, "ones_like": co.ones_like, "full_like": co.full_like,
    "var": co.variance, "std": co.deviation, "all": co.all_of, "any": co.any_of, "norm": co.norm, "ptp": co.spread,
    "logical_and": partial(co.logical, "and"), "logical_or": partial(co.logical, "or"), "logical_xor": partial(co.logical, "xor"),
    "logical_not": co.logical_not, "outer": co.outer, "dot": co.dot, "inner": co.inner, "einsum": einsum,
    "expand_dims": co.expand_dims, "squeeze": co.squeeze, "flatten": co.flattened, "moveaxis": co.moveaxis,
    "stack": co.stack, "hstack": co.beside, "vstack": co.below, "flip": co.flip, "fliplr": partial(co.flip, axis=1),
    "flipud": partial(co.flip, axis=0), "roll": co.roll, "repeat": co.repeat,
    "tile": co.tiled, "pad": co.pad, "diff": co.diff, "diagonal": co.diagonal, "diag": co.diag, "trace": co.trace,
    "topk": orders.topk, "prod": orders.product,
    "conv1d": conv1d, "conv2d": conv2d, "conv3d": conv3d, "sliding_window_view": sliding_window_view,
    "exp10": more.exp10, "cbrt": more.cbrt, "copysign": more.copysign, "heaviside": more.heaviside, "sinc": more.sinc,
    "nan_to_num": more.nan_to_num, "fmax": partial(more.known_of, "max"), "fmin": partial(more.known_of, "min"),
    "fmod": more.fmod,
    "radians": partial(more.times, pi / 180), "degrees": partial(more.times, 180 / pi),
    "average": more.average, "count_nonzero": more.count_nonzero, "nansum": more.nansum, "nanmean": more.nanmean,
    "vdot": more.vdot, "vecdot": more.vecdot, "tensordot": more.tensordot,
    "take": co.take, "take_along_axis": co.take_along_axis, "split": co.split,
}  # fmt: skip

OF_AXES = (
    "softmax", "log_softmax", "logsumexp", "var", "sum", "mean", "amax", "amin", "argmax", "argmin", "cumsum", "cumprod",
    "transpose", "swapaxes", "reshape", "broadcast_to", "tril", "triu", "std", "all", "any", "norm", "ptp", "expand_dims",
    "squeeze", "flatten", "moveaxis", "flip", "roll", "repeat", "tile", "pad", "diff", "diagonal", "diag", "trace", "split",
    "topk", "prod", "sliding_window_view", "average", "count_nonzero", "nansum", "nanmean",
)  # fmt: skip
"""The functions whose arguments behind the first one are axes or sizes."""
OF_LISTS = ("concatenate", "stack", "hstack", "vstack")
"""The functions of several values, which in Python are in a list."""
OF_INDICES = ("take", "take_along_axis", "tensordot", "vecdot")
"""Those that have axes behind two values."""
OF_FILTERS = ("conv1d", "conv2d", "conv3d")
"""Those that have steps and sizes behind a value, its weights and a bias."""
VALUES = (
    "min", "max", "a_min", "a_max", "min_val", "max_val", "low", "high", "fill_value", "value", "indices", "x", "y",
    "nan", "posinf", "neginf", "weights", "weight", "bias",
)  # fmt: skip
"""The options that are values."""
RENAMED = {
    "dim": "axis", "keepdim": "keepdims", "correction": "ddof", "min": "low", "max": "high", "a_min": "low", "a_max": "high",
    "dims": "axis", "shifts": "shift", "axis1": "a", "axis2": "b", "dim0": "a", "dim1": "b",
    "indices_or_sections": "sections", "start_dim": "start",
    "end_dim": "end", "pad_width": "widths", "repeats": "count", "p": "ord", "min_val": "low",
    "max_val": "high", "fill_value": "value", "k": "offset", "reps": "counts", "diagonal": "k", "newshape": "shape",
    "size": "shape",
}  # fmt: skip
"""What options are called in other libraries, where a function has them by the name behind."""
OF_TILES = (
    "sort", "merge", "gather", "every", "swap_pairs", "nibbles", "pack", "bits",
)  # fmt: skip
"""What .tile has for tiles alone."""
INSTEAD = {
    **dict.fromkeys(("argsort", "median", "unique", "nonzero"), "sort in a kernel of tiles: sort(x), T.tile.sort in Python"),
    **dict.fromkeys(
        ("inv", "solve", "det", "eig", "eigh", "svd", "qr", "cholesky", "pinv", "lstsq", "fft", "ifft", "rfft"),
        "call NumPy's or torch's, before or behind the call of the kernel",
    ),
    "convolve": "write the sum over slices: x[:, :-2] * w[0] + x[:, 1:-1] * w[1] + x[:, 2:] * w[2]",
}  # fmt: skip
"""What to do in place of functions of other libraries."""


USAGE = {
    "where": "where(x > 0, x, y)", "softmax": "softmax(x, axis=-1)", "reshape": "reshape(x, 4, -1)", "clip": "clip(x, low, high)",
    "clamp": "clamp(x, low, high)", "roll": "roll(x, 1, axis=0)", "flip": "flip(x, axis=0)", "repeat": "repeat(x, 2, axis=0)",
    "take": "take(x, idx, axis=0)", "norm": "norm(x, axis=-1)", "tile": "tile(x, 2, 1)",
    "round": "round(x), or round(x * 100) / 100 for two digits",
}  # fmt: skip


def values_among(name: str, count: int) -> int:
    """How many of so many arguments are values, in front of axes and sizes."""
    return next((n for n, names in enumerate((OF_AXES, OF_INDICES, OF_FILTERS), 1) if name in names), count)


def call(name: str, args: Sequence[Any], options: dict[str, Any], span: Span | None) -> Value | tuple[Value, ...]:
    """A function of values. TileError where there is none of this name, or it takes no such arguments."""
    function = FUNCTIONS.get(name)
    if name in OF_TILES:
        help = f"write the kernel with its tiles: {hint(f'a grid, buffers, and y = {name}(x)', 'with T.Kernel(...)', span)}"
        raise TileError(f"`{name}` is there for tiles, not for whole tensors", span, help=help)
    if function is None:
        help = INSTEAD.get(name) or did_you_mean(name, [*FUNCTIONS, *DTYPES, "arange"])
        raise TileError(f"unknown function `{name}`", span, help=help)
    known = inspect.signature(function).parameters
    options = {k if k in known else RENAMED.get(k, k): o for k, o in options.items()}
    if len(args) == 1 and (several := [k for k in options if k in known and known[k].kind is known[k].VAR_POSITIONAL]):
        args = [*args, options.pop(several[0])]
    try:
        bound = inspect.signature(function).bind(*args, **options, span=span)
    except TypeError:
        unknown = next((k for k in options if k not in known), None)
        what = f"`{name}` takes no `{unknown}`" if unknown else f"`{name}` does not take these arguments"
        help = "cast what it gives, or what it takes" if unknown == "dtype" else _usage(name)
        raise TileError(what, span, help=help) from None
    for parameter, x in bound.arguments.items():
        if known[parameter].annotation in ("int", "bool") and not isinstance(x, int):
            raise TileError(f"`{parameter}` of `{name}` is a whole number, not {x}", span, help=_usage(name))
    return function(*args, **options, span=span)


def _usage(name: str) -> str:
    if name in UNARY and name not in USAGE:
        return f"{name}(x)"
    if name in ("sum", "mean", "max", "min", "amax", "amin", "var", "std", "all", "any"):
        return f"{name}(x, axis=-1, keepdims=1)"
    if name in ("cumsum", "cumprod"):
        return f"{name}(x, axis=-1)"
    return USAGE.get(name, "")
