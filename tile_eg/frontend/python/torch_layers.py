"""torch's layers over the planes of images: pooling, and norms over channels and groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from tile_eg import language as T
from tile_eg.errors import TileError

Sizes = int | Sequence[int]


def _pair(n: Sizes) -> tuple[int, int]:
    return (n, n) if isinstance(n, int) else (n[0], n[-1])


def _pooled(x: Any, kernel: Sizes, stride: Sizes | None, join: Callable[[Any, Any], Any]) -> tuple[Any, int]:
    """The elements of each window joined, and how many they are. Windows side by side are axes of their own."""
    (h, w), (down, right) = _pair(kernel), _pair(kernel if stride is None else stride)
    rows, columns = x.shape[-2:]
    if h > rows or w > columns:
        raise TileError(f"a window of {h} x {w} is larger than a plane of {rows} x {columns}")
    high, wide = (rows - h) // down + 1, (columns - w) // right + 1
    ends = (high - 1) * down + 1, (wide - 1) * right + 1
    parts = [x[..., i : i + ends[0] : down, j : j + ends[1] : right] for i in range(h) for j in range(w)]
    return reduce(join, parts), h * w


def _side_by_side(x: Any, kernel: Sizes, stride: Sizes | None) -> Any:
    """The windows as axes -3 and -1 of a plane that they fill; None where they do not."""
    h, w = _pair(kernel)
    rows, columns = x.shape[-2:]
    if rows % h or columns % w or _pair(kernel if stride is None else stride) != (h, w):
        return None
    return x.reshape(*x.shape[:-2], rows // h, h, columns // w, w)


def _max_pool(x: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> Any:
    x = _padded(x, padding, -math.inf)
    windows = _side_by_side(x, kernel_size, stride)
    return _pooled(x, kernel_size, stride, T.maximum)[0] if windows is None else windows.amax(axis=(-3, -1))


def _avg_pool(x: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> Any:
    x = _padded(x, padding, 0.0)
    windows = _side_by_side(x, kernel_size, stride)
    if windows is not None:
        return windows.mean(axis=(-3, -1))
    total, count = _pooled(x, kernel_size, stride, lambda a, b: a + b)
    return total / count


def _padded(x: Any, padding: Sizes, value: float) -> Any:
    high, wide = _pair(padding)
    if not high and not wide:
        return x
    around = [(0, 0)] * (len(x.shape) - 2)
    return x.__tile_word__("pad", (x, [*around, (high, high), (wide, wide)]), {"constant_values": value})


def _adaptive(x: Any, output_size: Any) -> Any:
    high, wide = (n if o is None else o for o, n in zip(_pair(output_size), x.shape[-2:], strict=True))
    if x.shape[-2] % high or x.shape[-1] % wide:
        raise TileError(f"a plane of {x.shape[-2]} x {x.shape[-1]} is not parted in {high} x {wide} windows of one size")
    return _avg_pool(x, (x.shape[-2] // high, x.shape[-1] // wide))


def _of_channels(v: Any, x: Any) -> Any:
    """A number for each channel beside x."""
    return v.reshape(-1, *[1] * (len(x.shape) - 2))


def _scaled(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * _of_channels(weight, x)
    return x if bias is None else x + _of_channels(bias, x)


def _batch_norm(
    x: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """By the statistics that are given; in training by those of the batch, and what runs along is left as it is."""
    if training:
        axes = (0, *range(2, len(x.shape)))
        less = x - T.mean(x, axis=axes, keepdims=True)
        return _scaled(less * T.rsqrt(T.mean(less * less, axis=axes, keepdims=True) + eps), weight, bias)
    return _scaled((x - _of_channels(running_mean, x)) * _of_channels(T.rsqrt(running_var + eps), x), weight, bias)


def _group_norm(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    groups = x.reshape(x.shape[0], num_groups, -1)
    less = groups - T.mean(groups, axis=-1, keepdims=True)
    return _scaled((less * T.rsqrt(T.mean(less * less, axis=-1, keepdims=True) + eps)).reshape(*x.shape), weight, bias)


def _dropout(x: Any, p: float = 0.5, training: bool = True) -> Any:
    if training and p:
        raise TileError("nothing is drawn by chance here: dropout leaves out no element", help="dropout(x, p, training=False)")
    return x


LAYERS: dict[str, Callable[..., Any]] = {
    "max_pool2d": _max_pool, "avg_pool2d": _avg_pool, "adaptive_avg_pool2d": _adaptive, "batch_norm": _batch_norm,
    "group_norm": _group_norm, "dropout": _dropout,
}  # fmt: skip
