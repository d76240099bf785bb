"""Arrays that are there when a function of whole tensors is read: those of one number, of positions, and of two triangles."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tile_eg.errors import Span, TileError
from tile_eg.frontend.python.values import as_dtype
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.values import NEW_AXIS, Slice, Value
from tile_eg.ops.types import F32, FLOATS, I32, WHOLE

FLOATS_BY_NAME = {d.numpy: d for d in FLOATS}
FILLED = {"zeros": 0.0, "ones": 1.0, "full": None}
"""The words that make a tensor of one number, and which one."""


def filled(name: str, args: Sequence[Any], options: Mapping[str, Any], span: Span | None) -> Value:
    """`T.zeros((8, 8), "float16")`, `T.full((8, 8), 3.0)`. TileError where there is no shape, or no number."""
    given, number = dict(options), FILLED[name]
    names = ("shape", "fill_value", "dtype") if number is None else ("shape", "dtype")
    given |= dict(zip((*names, "more"), args, strict=False))
    shape, number = given.pop("shape", None), given.pop("fill_value", number)
    dtype = as_dtype(given.pop("dtype", "float32"), span)
    if shape is None or not isinstance(number, int | float) or given:
        help = f"T.{name}{_LIKE[name]}"
        raise TileError(f"`{name}` takes a shape{', a number' * (name == 'full')} and a type", span, help=help)
    sizes = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    return v.cast(dtype, v.repeated(v.number(number, span), sizes, span), span)


_LIKE = {"full": '((8, 8), 1.5, "float16")', "zeros": '((8, 8), "float16")', "ones": '((8, 8), "float16")'}


def value_of(x: Any, span: Span | None) -> Value | None:
    """What NumPy's or torch's array holds, as a value that needs no input: `np.ones((8, 8))`, `torch.arange(S)`,
    `np.tril(np.ones((S, S)))`. None of any other."""
    array = _as_numpy(x)
    if array is None or array.dtype.kind not in "biuf" or not array.size:
        return None
    if not array.ndim and array.dtype.kind != "b":
        return _number(array[()], span)
    found = _uniform(array, span) or _steps(array, span) or _triangles(array, span)
    return found and _typed(x, array, found, span)


def _as_numpy(x: Any) -> np.ndarray | None:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        held = x.detach().cpu()
        return held.float().numpy() if held.dtype is torch.bfloat16 else held.numpy()
    return x if isinstance(x, np.ndarray) else None


def _typed(given: Any, array: np.ndarray, x: Value, span: Span | None) -> Value:
    """The values in the element type of what was given, of 64 bits in that of 32. TileError where these do not hold them."""
    if array.dtype.kind == "b":
        return v.truth(x, span)
    if array.dtype.kind == "f":
        return v.cast(FLOATS_BY_NAME.get(str(given.dtype).removeprefix("torch."), F32), x, span)
    least, most = int(array.min()), int(array.max())
    dtype = next((d for d in WHOLE if d.numpy == array.dtype.name), I32)
    if not np.iinfo(dtype.numpy).min <= least <= most <= np.iinfo(dtype.numpy).max:
        raise TileError(f"an array holds {most if most > -least else least}: whole numbers have 32 bits", span)
    return v.cast(dtype, x, span)


def _number(n: Any, span: Span | None) -> Value:
    return v.number(float(n) if isinstance(n, np.floating) else int(n), span)


def _uniform(array: np.ndarray, span: Span | None) -> Value | None:
    first = array.flat[0]
    return v.repeated(_number(first, span), array.shape, span) if (array == first).all() else None


def _steps(array: np.ndarray, span: Span | None) -> Value | None:
    """Numbers in a row that are all as far apart."""
    if array.ndim != 1 or array.size < 2 or array.dtype.kind == "b":
        return None
    step = array[1] - array[0]
    if (array != array[0] + step * np.arange(array.size)).any():
        return None
    places = v.binary("mul", v.arange(array.size, span), _number(step, span), span) if step != 1 else v.arange(array.size, span)
    return v.binary("add", places, _number(array[0], span), span) if array[0] else places


def _triangles(array: np.ndarray, span: Span | None) -> Value | None:
    """A matrix, or the same one several times, of one number up to a diagonal and another one behind it."""
    if array.ndim < 2 or not (plane := array.reshape(-1, *array.shape[-2:]))[:1].size or (plane != plane[0]).any():
        return None
    rows, columns = np.indices(plane[0].shape, sparse=True)
    below, above = plane[0][-1, 0], plane[0][0, -1]
    right = (columns - rows)[plane[0] != below]
    first = int(right.min()) if right.size else 0
    if (plane[0] != np.where(columns - rows < first, below, above)).any():
        return None
    at = [v.window(v.arange(n, span), [Slice(), *[NEW_AXIS] * k], span) for k, n in ((1, rows.size), (0, columns.size))]
    up_to = v.compare("lt", at[1], v.binary("add", at[0], v.number(first), span), span)
    return v.repeated(v.where(up_to, _number(below, span), _number(above, span), span), array.shape, span)
