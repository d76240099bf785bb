"""Windows that move along axes, and the convolutions that are sums over them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.values import NEW_AXIS, Slice, Value
from tile_eg.ops.records import record

Sizes = int | Sequence[int]


@record
class Sliding:
    """A window of `size` elements, `dilation` apart, that moves in steps along an axis with zeros before and behind it."""

    axis: int
    size: int
    step: int = 1
    dilation: int = 1
    before: int = 0
    behind: int = 0

    def count(self, extent: int) -> int:
        """The places that it has on an axis."""
        return (extent + self.before + self.behind - self.dilation * (self.size - 1) - 1) // self.step + 1


def windows(x: Value, taken: Sequence[Sliding], span: Span | None = None) -> Value:
    """The axes of x, of which some run over the places of a window, and behind them one for the elements of each window.

    TileError where a window is longer than its axis, or does not move along it.
    """
    shape = list(x.shape)
    for s in taken:
        _check(s, span)
        if s.count(x.shape[s.axis]) < 1:
            raise TileError(f"a window of {s.size} does not move along an axis of {x.shape[s.axis]}", span)
        shape[s.axis] = s.count(x.shape[s.axis])
    return Value("slide", (x,), tuple(taken), (*shape, *(s.size for s in taken)), x.dtype, span, truth=x.truth)


def _check(s: Sliding, span: Span | None) -> None:
    """TileError where the size, stride or dilation of a window is below 1, or a padding below 0."""
    for what, n, least in (("window", s.size, 1), ("stride", s.step, 1), ("dilation", s.dilation, 1), ("padding", s.before, 0)):
        if n < least:
            raise TileError(f"a {what} is {least} or more, not {n}", span)


def is_input(x: Value) -> bool:
    """Whether a value is an input as it is, its axes in another order or beside axes of one element."""
    if x.op == "reshape" and [n for n in x.shape if n != 1] != [n for n in x.of[0].shape if n != 1]:
        return False
    return x.op == "tensor" or (x.op in ("permute", "reshape") and is_input(x.of[0]))


def sliding_window_view(x: Value, window_shape: Sizes, axis: Sizes | None = None, span: Span | None = None) -> Value:
    """As NumPy's: of all axes, or of those that are named."""
    sizes = _whole(window_shape, span)
    axes = range(len(x.shape)) if axis is None else _whole(axis, span)
    if len(axes) != len(sizes):
        raise TileError(f"windows of {sizes} go along {len(sizes)} axes, not along {len(axes)}", span)
    taken = [Sliding(v.axis_of(a, x, span), n) for a, n in zip(axes, sizes, strict=True)]
    if len({s.axis for s in taken}) < len(taken):
        raise TileError(f"two windows along one axis, axes {list(axes)}", span, help="take one behind the other, each by a call")
    return windows(x, taken, span)


def conv1d(
    x: Value, weight: Value, bias: Value | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
    groups: int = 1, span: Span | None = None,
) -> Value:  # fmt: skip
    """As torch's: x [N, C, W] or [C, W], weight [O, C / groups, K], bias [O]."""
    return _conv(1, x, weight, bias, (stride, padding, dilation), groups, span)


def conv2d(
    x: Value, weight: Value, bias: Value | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
    groups: int = 1, span: Span | None = None,
) -> Value:  # fmt: skip
    """As torch's: x [N, C, H, W] or [C, H, W], weight [O, C / groups, KH, KW], bias [O]."""
    return _conv(2, x, weight, bias, (stride, padding, dilation), groups, span)


def conv3d(
    x: Value, weight: Value, bias: Value | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
    groups: int = 1, span: Span | None = None,
) -> Value:  # fmt: skip
    """As torch's: x [N, C, D, H, W] or [C, D, H, W], weight [O, C / groups, KD, KH, KW], bias [O]."""
    return _conv(3, x, weight, bias, (stride, padding, dilation), groups, span)


def _conv(
    rank: int, x: Value, weight: Value, bias: Value | None, ways: tuple[Sizes, Sizes | str, Sizes], groups: int,
    span: Span | None,
) -> Value:  # fmt: skip
    if len(x.shape) == rank + 1 and isinstance(weight, Value) and len(weight.shape) == rank + 2:
        batch = v.window(x, [NEW_AXIS, v.REST], span)
        return v.window(_conv(rank, batch, weight, bias, ways, groups, span), [0, v.REST], span)
    _check_shapes(rank, x, weight, groups, span)
    if not (bias is None or (isinstance(bias, Value) and bias.shape == weight.shape[:1])):
        raise TileError(f"a bias has a number for each of {weight.shape[0]} channels, not {bias}", span)
    moved = windows(x, _sliding(weight.shape[2:], ways, span), span)
    found = (_of_each_channel if weight.shape[1] == 1 else _of_channels)(moved, weight, groups, rank, span)
    if bias is None:
        return found
    return v.binary("add", found, v.window(bias, [Slice(), *[NEW_AXIS] * rank], span), span)


def _check_shapes(rank: int, x: Value, weight: Value, groups: int, span: Span | None) -> None:
    what = f"conv{rank}d"
    letters = "DHW"[3 - rank :]
    if not isinstance(weight, Value) or len(x.shape) != rank + 2 or len(weight.shape) != rank + 2:
        image = ", ".join(("N", "C", *letters))
        message = f"`{what}` takes images [{image}] and weights of as many dimensions, not {x} and {weight}"
        raise TileError(message, span)
    out, deep = weight.shape[:2]
    if groups < 1 or x.shape[1] != deep * groups or out % groups:
        of = f"`{what}` of {x.shape[1]} channels in {groups} group{'s' * (groups != 1)}"
        message = f"{of}: weights {list(weight.shape)} have {deep} a group"
        raise TileError(message, span, help=f"weights are [O, C / groups, {', '.join(f'K{c}' for c in letters)}]")


def _sliding(sizes: Sequence[int], ways: tuple[Sizes, Sizes | str, Sizes], span: Span | None) -> list[Sliding]:
    stride, padding, dilation = ways
    steps, gaps = _each(stride, len(sizes), span), _each(dilation, len(sizes), span)
    if padding == "same" and any(n != 1 for n in steps):
        raise TileError("`padding='same'` is for a stride of 1", span, help="give the zeros of each side: padding=1")
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise TileError(f"`padding` is a number of zeros, 'same' or 'valid', not '{padding}'", span)
    if isinstance(padding, str):
        every = [g * (n - 1) if padding == "same" else 0 for n, g in zip(sizes, gaps, strict=True)]
        zeros = [(n // 2, n - n // 2) for n in every]
    else:
        zeros = [(n, n) for n in _each(padding, len(sizes), span)]
    each = zip(sizes, steps, gaps, zeros, strict=True)
    return [Sliding(2 + n, size, step, gap, *around) for n, (size, step, gap, around) in enumerate(each)]


def _each(n: Sizes, rank: int, span: Span | None) -> list[int]:
    found = _whole(n, span)
    if len(found) not in (1, rank):
        raise TileError(f"one whole number is taken, or {rank} of them, not {len(found)}", span)
    return found * rank if len(found) == 1 else found


def _whole(n: Any, span: Span | None) -> list[int]:
    found = list(n) if isinstance(n, list | tuple) else [n]
    if not all(isinstance(i, int) for i in found):
        raise TileError(f"whole numbers are taken, not {n}", span)
    return found


def _of_channels(x: Value, weight: Value, groups: int, rank: int, span: Span | None) -> Value:
    """Products over the channels of a group and the elements of a window: x [N, C, places, window]."""
    n, c, out = x.shape[0], weight.shape[1], weight.shape[0] // groups
    places, window = x.shape[2 : 2 + rank], weight.shape[2:]
    axes = [*range(len(x.shape) + 1)]
    x = v.reshape(x, (n, groups, c, *places, *window), span)
    x = v.permute(x, [0, 1, *axes[3 : 3 + rank], *axes[3 + rank :], 2], span)
    x = v.reshape(x, (n, groups, prod(places), prod(window) * c), span)
    w = v.reshape(weight, (groups, out, c, *window), span)
    w = v.reshape(v.permute(w, [0, *range(3, 3 + rank), 2, 1], span), (groups, prod(window) * c, out), span)
    found = v.permute(v.matmul(x, w, span) if groups > 1 else _alone(x, w, span), [0, 1, 3, 2], span)
    return v.reshape(found, (n, groups * out, *places), span)


def _alone(x: Value, w: Value, span: Span | None) -> Value:
    """The product of one group."""
    (n, _, p, k), o = x.shape, w.shape[-1]
    return v.reshape(v.matmul(v.reshape(x, (n, p, k), span), v.reshape(w, (k, o), span), span), (n, 1, p, o), span)


def _of_each_channel(x: Value, weight: Value, groups: int, rank: int, span: Span | None) -> Value:
    """Sums over the elements of a window, of each channel by itself."""
    n, times = x.shape[0], weight.shape[0] // groups
    places, window = x.shape[2 : 2 + rank], weight.shape[2:]
    x = v.reshape(x, (n, groups, 1, *places, *window), span)
    w = v.reshape(weight, (groups, times, *[1] * rank, *window), span)
    along = list(range(3 + rank, 3 + 2 * rank))
    found = v.reduce("sum", v.binary("mul", x, w, span), along, False, span)
    return v.reshape(found, (n, groups * times, *places), span)
