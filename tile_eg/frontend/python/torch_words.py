"""What torch's functions and methods mean of whole tensors, where torch has them alone, or otherwise than NumPy.

They are written with the operators and words of values; what is not here means what NumPy's function of that name does.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from itertools import accumulate
from operator import index
from typing import Any

from tile_eg import language as T
from tile_eg.errors import TileError
from tile_eg.frontend.python.torch_layers import LAYERS
from tile_eg.frontend.python.torch_losses import LOSSES
from tile_eg.ops.elementwise import COMPARE

Axes = int | Sequence[int]
Extremes = namedtuple("Extremes", ("values", "indices"))
"""What torch gives of elements that are chosen along an axis."""


class Count(int):
    """How many elements a tensor has, as NumPy's `x.size`; called, its shape or a dimension of it, as torch's `x.size(-1)`."""

    shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]


def count(shape: tuple[int, ...]) -> Count:
    found = Count(math.prod(shape))
    found.shape = shape
    return found


def _given(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes


def _view(x: Any, *sizes: Any) -> Any:
    if len(sizes) != 1 or _counts(sizes[0]):
        return x.reshape(*_given(sizes))
    if (y := _to(x, sizes[0])).dtype != x.dtype:
        raise TileError("`view` as another type would take the bits of the elements", help=f"x.astype({y.dtype!r}) converts them")
    return x


def _counts(size: Any) -> bool:
    return isinstance(size, list | tuple) or hasattr(size, "__index__")


def _expand(x: Any, *sizes: Any) -> Any:
    """The sizes that are -1 stay as they are."""
    wanted = _given(sizes)
    if len(wanted) < len(x.shape):
        raise TileError(f"a tensor of {len(x.shape)} axes is not expanded to {len(wanted)}")
    own = (1,) * (len(wanted) - len(x.shape)) + tuple(x.shape)
    return T.broadcast_to(x, [n if w == -1 else w for w, n in zip(wanted, own, strict=True)])


def _transpose(x: Any, *axes: Any) -> Any:
    """Two axes change places. NumPy's of a matrix names all its axes, so that (0, 1) leaves it as it is: that is refused."""
    if len(axes) != 2 or len(x.shape) < 2:
        return T.transpose(x, *axes)
    a, b = (index(n) for n in axes)
    if len(x.shape) == 2 and (a % 2, b % 2) == (0, 1):
        raise TileError("transpose(0, 1) of a matrix turns it in torch, and leaves it in NumPy", help="write x.T, or x")
    return T.swapaxes(x, a, b)


def _t(x: Any) -> Any:
    return x.T


def _to(x: Any, *given: Any, **options: Any) -> Any:
    """Another element type; where a tensor lies is found."""
    kind = next((g for g in (*given, options.get("dtype")) if g is not None and not _names_device(g)), None)
    if kind is None:
        return x
    return x.astype(kind.dtype if hasattr(kind, "mT") else kind)


def _names_device(x: Any) -> bool:
    return isinstance(x, bool) or type(x).__name__ == "device" or str(x).split(":")[0] in ("cpu", "npu", "cuda")


def _same(x: Any, *_: Any, **__: Any) -> Any:
    return x


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return T.where(mask, value, x)


def _split(x: Any, sizes: Any, dim: int = 0) -> Any:
    """Parts of a size, of which the last may be shorter, or of the sizes of a list."""
    length = x.shape[dim]
    if isinstance(sizes, list | tuple):
        if sum(sizes) != length or min(sizes) < 0:
            raise TileError(f"the sizes {tuple(sizes)} do not add up to the axis of {length} that is split")
        return T.split(x, list(accumulate(sizes))[:-1], axis=dim)
    if sizes < 1:
        raise TileError(f"an axis of {length} is not split in parts of {sizes}")
    return T.split(x, list(range(sizes, length, sizes)), axis=dim)


def _chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    if chunks < 1:
        raise TileError(f"a tensor is not split in {chunks} parts")
    return _split(x, -(-x.shape[dim] // chunks), dim)


def _unbind(x: Any, dim: int = 0) -> Any:
    return tuple(T.take(x, n, axis=dim) for n in range(x.shape[dim]))


def _narrow(x: Any, dim: int, start: int, length: int) -> Any:
    size = x.shape[dim]
    first = start + size if start < 0 else start
    if length < 0 or not 0 <= first <= size - length:
        raise TileError(f"an axis of {size} has no {length} elements from {start} on")
    return x[(*[slice(None)] * (dim % len(x.shape)), slice(first, first + length))]


def _repeat_interleave(x: Any, repeats: int, dim: int | None = None) -> Any:
    return T.repeat(x, repeats, axis=dim)


def _gather(x: Any, dim: int, index: Any) -> Any:
    return T.take_along_axis(x, index, dim)


def _index_select(x: Any, dim: int, index: Any) -> Any:
    return T.take(x, index, axis=dim)


def _unflatten(x: Any, dim: int, sizes: Sequence[int]) -> Any:
    at = dim % len(x.shape)
    return x.reshape(*x.shape[:at], *sizes, *x.shape[at + 1 :])


def _extreme(name: str) -> Callable[..., Any]:
    """Of two values the larger; of one over all its elements; along an axis both the elements and their places."""

    def extreme(x: Any, other: Any = None, keepdim: bool = False, *, dim: Any = None) -> Any:
        along = other if isinstance(other, int) else dim
        if along is None:
            return getattr(x, f"a{name}")() if other is None else getattr(T, f"{name}imum")(x, other)
        values = getattr(x, f"a{name}")(axis=along, keepdims=keepdim)
        return Extremes(values, getattr(x, f"arg{name}")(axis=along, keepdims=keepdim))

    return extreme


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return Extremes(*T.topk(x, k, axis=dim, largest=largest))


def _spread(name: str) -> Callable[..., Any]:
    """torch's variance is over n - 1, where not told otherwise."""

    def spread(x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Any:
        dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
        less = int(unbiased) if correction is None else correction
        return getattr(T, name)(x, axis=dim, keepdims=keepdim, ddof=less)

    return spread


def _scaled_sum(name: str) -> Callable[..., Any]:
    """x + alpha * y, and x - alpha * y."""

    def joined(x: Any, y: Any, *, alpha: Any = 1) -> Any:
        y = y if alpha == 1 else y * alpha
        return x + y if name == "add" else x - y

    return joined


def _clamp_min(x: Any, low: Any) -> Any:
    return T.maximum(x, low)


def _clamp_max(x: Any, high: Any) -> Any:
    return T.minimum(x, high)


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return T.gelu(x)
    return 0.5 * x * (1 + T.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    return T.leaky_relu(x, negative_slope)


def _softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    return T.where(x * beta > threshold, x, T.softplus(x * beta) / beta)


def _elu(x: Any, alpha: float = 1.0) -> Any:
    return T.where(x > 0, x, alpha * T.expm1(T.minimum(x, 0)))


def _hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    return T.clip(x, min_val, max_val)


def _mish(x: Any) -> Any:
    return x * T.tanh(T.softplus(x))


def _hardswish(x: Any) -> Any:
    return x * T.clip(x + 3, 0, 6) / 6


def _hardsigmoid(x: Any) -> Any:
    return T.clip(x + 3, 0, 6) / 6


def _logsigmoid(x: Any) -> Any:
    return T.minimum(x, 0) - T.log1p(T.exp(-T.abs(x)))


def _glu(x: Any, dim: int = -1) -> Any:
    if x.shape[dim] % 2:
        raise TileError(f"`glu` halves an axis, which {x.shape[dim]} elements are not")
    a, b = _chunk(x, 2, dim)
    return a * T.sigmoid(b)


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    y = x @ (weight.T if len(weight.shape) == 2 else weight)
    return y if bias is None else y + bias


def _addmm(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return (x if beta == 1 else beta * x) + (a @ b if alpha == 1 else alpha * (a @ b))


def _norm_axes(shape: Any) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0)) if isinstance(shape, list | tuple) else (-1,)


def _layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    axes = _norm_axes(normalized_shape)
    less = x - T.mean(x, axis=axes, keepdims=True)
    y = less * T.rsqrt(T.mean(less * less, axis=axes, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    squares = T.mean(x * x, axis=_norm_axes(normalized_shape), keepdims=True)
    y = x * T.rsqrt(squares + (2.0**-23 if eps is None else eps))
    return y if weight is None else y * weight


def _normalize(x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    return x / T.maximum(T.norm(x, p, axis=dim, keepdims=True), eps)


def _cosine_similarity(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    sizes = [T.maximum(T.norm(a, axis=dim), eps) for a in (x, y)]
    return T.sum(x * y, axis=dim) / (sizes[0] * sizes[1])


def _attention(
    q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if dropout_p or enable_gqa:
        raise TileError("attention has no dropout, and as many heads of K and V as of Q", help="K[:, :, None] repeats heads")
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        s = T.where(T.arange(q.shape[-2])[:, None] >= T.arange(k.shape[-2]), s, -math.inf)
    if attn_mask is not None:
        s = T.where(attn_mask, s, -math.inf) if attn_mask.dtype == "bool" else s + attn_mask
    return T.softmax(s) @ v


def _one_hot(x: Any, num_classes: int = -1) -> Any:
    if num_classes < 1:
        raise TileError("one_hot needs the number of classes: elements are not known when the kernel is read")
    return (x[..., None] == T.arange(num_classes)).astype("int32")


def _embedding(x: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The row `padding_idx` has no gradient, of which there is none here."""
    return weight[x]


def _addcmul(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + (a * b if value == 1 else value * a * b)


def _addcdiv(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + (a / b if value == 1 else value * a / b)


def _lerp(x: Any, y: Any, weight: Any) -> Any:
    return x + weight * (y - x)


def _outputs_of(name: str) -> Callable[..., Any]:
    """A method that is a word by another name."""
    return lambda x, *args, **options: getattr(T, name)(x, *args, **options)


METHODS: dict[str, Callable[..., Any]] = {
    "split": _split, "view": _view, "expand": _expand, "transpose": _transpose, "t": _t, "to": _to, "type": _to,
    "masked_fill": _masked_fill,
    "unbind": _unbind, "chunk": _chunk, "narrow": _narrow, "clamp_min": _clamp_min, "clamp_max": _clamp_max,
    "mm": _outputs_of("matmul"), "bmm": _outputs_of("matmul"), "add": _scaled_sum("add"), "sub": _scaled_sum("sub"),
    "numel": lambda x: x.size, "dim": lambda x: x.ndim,
    "float": lambda x: x.astype("float32"), "half": lambda x: x.astype("float16"), "bfloat16": lambda x: x.astype("bfloat16"),
    "int": lambda x: x.astype("int32"), "bool": lambda x: x.astype(bool), "type_as": lambda x, y: x.astype(y.dtype),
    "repeat_interleave": _repeat_interleave, "gather": _gather, "index_select": _index_select, "unflatten": _unflatten,
    "view_as": lambda x, y: x.reshape(*y.shape), "reshape_as": lambda x, y: x.reshape(*y.shape),
    "expand_as": lambda x, y: _expand(x, *y.shape), "topk": _topk, "addcmul": _addcmul, "addcdiv": _addcdiv, "lerp": _lerp,
    **dict.fromkeys(("contiguous", "clone", "copy"), _same),
}  # fmt: skip
"""Methods of torch's tensors that NumPy's arrays do not have, or have otherwise without a doubt which one is meant."""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **METHODS, **LAYERS, "max": _extreme("max"), "min": _extreme("min"), "var": _spread("var"), "std": _spread("std"),
    "gelu": _gelu, "leaky_relu": _leaky_relu, "softplus": _softplus, "elu": _elu, "hardtanh": _hardtanh,
    "relu6": lambda x: T.clip(x, 0, 6), "mish": _mish, "hardswish": _hardswish, "hardsigmoid": _hardsigmoid,
    "logsigmoid": _logsigmoid, "log_sigmoid": _logsigmoid, "glu": _glu, "linear": _linear, "addmm": _addmm, "baddbmm": _addmm,
    "layer_norm": _layer_norm, "rms_norm": _rms_norm, "normalize": _normalize, "cosine_similarity": _cosine_similarity,
    "scaled_dot_product_attention": _attention, "one_hot": _one_hot,
    "embedding": _embedding, **LOSSES,
}  # fmt: skip
"""Functions of torch, and of torch.nn.functional."""
SIGNS = ("mul", "div", *COMPARE, "neg", "logical_not", "matmul", "pow")
"""Operators that are methods, too."""
NO_METHODS = ("where", "select", "repeat", "pad", "einsum", "concatenate", "stack", "hstack", "vstack", "max", "min")
"""Functions of which a method of that name is another thing, or none."""
NO_MATTER = ("inplace", "sparse", "scale_grad_by_freq", "memory_format", "non_blocking", "size_average", "reduce")
"""Arguments that say nothing of the result where they are None or False."""
NOTHING = {
    "ignore_index": -100, "reduction": "mean", "norm_type": 2.0, "dilation": 1, "ceil_mode": False, "count_include_pad": True,
    "return_indices": False,
}  # fmt: skip
"""What torch passes for arguments that nobody gave, beside None."""
WIDENED = ("softmax", "log_softmax", "sum", "mean", "cumsum")
"""Functions that cast their operand first where they are given a dtype."""
ALONG = ("softmax", "log_softmax")
"""Functions for which torch guesses an axis where it is not told."""
OTHERWISE = {"transpose": "swapaxes"}
"""Functions of torch's whose method NumPy has otherwise, by another name."""
OWN_WORDS = ("dim", "keepdim", "unbiased")
"""Options that are torch's alone: a method with one of these means what torch's does."""
FIRST = ("input", "other")
"""The names of torch's first two operands."""


def _nothing(option: str, given: Any) -> bool:
    return given is None or (isinstance(given, int | float | str) and NOTHING.get(option) == given)


def of_torch(name: str, args: Sequence[Any], options: Mapping[str, Any], word: Callable[..., Any]) -> Any:
    """What a function of torch's gives; `word` computes one that NumPy has alike."""
    args = [*args, *(options[n] for n in FIRST if n in options)]
    options = {k: o for k, o in options.items() if k not in FIRST and k != "_stacklevel" and not (k in NO_MATTER and not o)}
    if options.get("dtype") is not None and name in WIDENED:
        args[0] = args[0].astype(options.pop("dtype"))
    if name in ALONG and len(args) < 2 and options.get("dim") is None:
        raise TileError(f"`{name}` is not told along which axis it goes", help=f"{name}(x, dim=-1)")
    function = FUNCTIONS.get(name)
    if function is None:
        return word(name, args, options)
    known = signature(function)
    options = {k: o for k, o in options.items() if k in known.parameters or not _nothing(k, o)}
    try:
        known.bind(*args, **options)
    except TypeError as e:
        raise TileError(f"`{name}` of tensors: {e}") from None
    return function(*args, **options)
