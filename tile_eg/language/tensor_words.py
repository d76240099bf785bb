"""The words that are about whole tensors, in functions that return expressions of their T.Tensor arguments.

The elementwise words (T.exp, T.where, T.max of two values, T.cast) are those of tiles, too. So are NumPy's functions of the same
names, and the operators; `frontend.tensor.functions` has what they mean.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tile_eg.language.words import Word

Axis = int | Sequence[int] | None


def softmax(x: Any, axis: Axis = -1) -> Any:
    """exp(x) over its sum along an axis, or along several."""


def log_softmax(x: Any, axis: Axis = -1) -> Any:
    """The logarithm of the softmax."""


def logsumexp(x: Any, axis: Axis = -1, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exponentials along an axis."""


def sum(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The sum over axes; None: all of them."""


def mean(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The mean over axes."""


def var(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The mean of the squares of what differs from the mean."""


def amax(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The largest element over axes; T.max is the larger of two values."""


def amin(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The smallest element over axes; T.min is the smaller of two values."""


def maximum(x: Any, y: Any) -> Any:
    """The larger of two values."""


def minimum(x: Any, y: Any) -> Any:
    """The smaller of two values."""


def matmul(a: Any, b: Any) -> Any:
    """a @ b, also of vectors, with leading axes that broadcast."""


def arange(count: Any, strides: Any = None, offset: Any = 0) -> Any:
    """The positions 0 .. count - 1, for masks: T.where(T.arange(S)[:, None] >= T.arange(S), s, -T.infinity()).

    In a kernel, T.arange(dst, strides, offset) fills a buffer: dst[i, j] = offset + i * strides[0] + j * strides[1].
    """


def tril(x: Any, k: int = 0) -> Any:
    """x up to its diagonal (or the one k to the right), else 0."""


def triu(x: Any, k: int = 0) -> Any:
    """x from its diagonal (or the one k to the right) on, else 0."""


def transpose(x: Any, *axes: Any) -> Any:
    """The axes in another order; without one, turned round."""


def swapaxes(x: Any, a: int, b: int) -> Any:
    """Two axes in each other's place."""


def broadcast_to(x: Any, *shape: Any) -> Any:
    """x in a shape to which its own broadcasts: its elements, repeated."""


def concatenate(parts: Sequence[Any], axis: int = 0) -> Any:
    """Values one behind the other along an axis."""


def stack(parts: Sequence[Any], axis: int = 0) -> Any:
    """Values of one shape one behind the other along a new axis."""


def split(x: Any, sections: Any, axis: int = 0) -> Any:
    """A tuple of parts of one size, or of those between the places in a list."""


def repeat(x: Any, count: int, axis: int | None = None) -> Any:
    """Each element so many times, one behind the other."""


def roll(x: Any, shift: int, axis: int | None = None) -> Any:
    """The elements moved on by `shift`; what leaves at the end comes in at the beginning."""


def diff(x: Any, n: int = 1, axis: int = -1) -> Any:
    """Each element but the first less the one before it, n times."""


def diagonal(x: Any, offset: int = 0) -> Any:
    """The diagonal of a matrix, or the one that lies `offset` columns to the right."""


def diag(x: Any, k: int = 0) -> Any:
    """The diagonal of a matrix; the matrix with a vector as its diagonal."""


def trace(x: Any, offset: int = 0) -> Any:
    """The sum of the diagonal."""


def einsum(subscripts: str, *operands: Any) -> Any:
    """Sums of products by the letters of axes: T.einsum("bij,bjk->bik", x, y)."""


def outer(a: Any, b: Any) -> Any:
    """Each element of a by each of b."""


def dot(a: Any, b: Any) -> Any:
    """The product of two vectors, or of matrices."""


def norm(x: Any, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Any:
    """The square root of the sum of squares; of `ord` 1 the sum of magnitudes, of inf the largest one."""


def std(x: Any, axis: Axis = None, keepdims: bool = False, ddof: int = 0) -> Any:
    """The square root of the variance."""


def ptp(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The largest element less the smallest."""


def all(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether all elements are true."""


def any(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether an element is true."""


def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    """x where it lies between low and high, else the nearer one."""


def square(x: Any) -> Any:
    """x * x."""


def logaddexp(x: Any, y: Any) -> Any:
    """The logarithm of exp(x) + exp(y)."""


def isfinite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN."""


def isinf(x: Any) -> Any:
    """Whether x is infinite."""


def expand_dims(x: Any, axis: int) -> Any:
    """x with a new axis of one element."""


def squeeze(x: Any, axis: Axis = None) -> Any:
    """x without axes of one element."""


def flatten(x: Any, start: int = 0, end: int = -1) -> Any:
    """The axes from `start` to `end` as one."""


def moveaxis(x: Any, source: int, to: int) -> Any:
    """An axis at another place among the others."""


def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    """The elements at indices of an axis."""


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """The elements at the indices of one axis, which may be others at each place of the other axes."""


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    """Windows that move along axes by an element, each with axes of its own behind the others; windows share their elements."""


def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """A convolution of images [N, C, W] with weights [O, C / groups, K]."""


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """A convolution of images [N, C, H, W] with weights [O, C / groups, KH, KW]."""


def conv3d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """A convolution of images [N, C, D, H, W] with weights [O, C / groups, KD, KH, KW]."""


def zeros(shape: Any, dtype: Any = "float32") -> Any:
    """A tensor of zeros."""


def ones(shape: Any, dtype: Any = "float32") -> Any:
    """A tensor of ones."""


def full(shape: Any, fill_value: Any, dtype: Any = "float32") -> Any:
    """A tensor of one number."""


def zeros_like(x: Any) -> Any:
    """Zeros in the shape and type of x."""


def ones_like(x: Any) -> Any:
    """Ones in the shape and type of x."""


def full_like(x: Any, value: Any) -> Any:
    """A number in the shape and type of x."""


def topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> Any:
    """The k largest elements of an axis, the largest first, and their places."""


def prod(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The product of the elements of an axis."""


def _word(function: Callable[..., Any]) -> Word:
    return Word(function.__name__, inspect.signature(function), "beginner", __doc__=function.__doc__)


FUNCTIONS: tuple[Callable[..., Any], ...] = (
    softmax, log_softmax, logsumexp, sum, mean, var, amax, amin, maximum, minimum, matmul, arange, tril, triu, transpose,
    swapaxes, broadcast_to, concatenate, stack, split, repeat, roll, diff, diagonal, diag, trace, einsum, outer, dot, norm, std,
    ptp, all, any, clip, square, logaddexp, isfinite, isinf, expand_dims, squeeze, flatten, moveaxis, take,
    take_along_axis, sliding_window_view, conv1d, conv2d, conv3d, topk, prod, zeros, ones, full, zeros_like, ones_like, full_like,
)  # fmt: skip
WORDS: dict[str, Word] = {f.__name__: _word(f) for f in FUNCTIONS}
