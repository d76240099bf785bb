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


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) over its sum along an axis."""


def log_softmax(x: Any, axis: int = -1) -> Any:
    """The logarithm of the softmax."""


def logsumexp(x: Any, axis: int = -1, keepdims: bool = False) -> Any:
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


def _word(function: Callable[..., Any]) -> Word:
    return Word(function.__name__, inspect.signature(function), "beginner", __doc__=function.__doc__)


FUNCTIONS: tuple[Callable[..., Any], ...] = (
    softmax, log_softmax, logsumexp, sum, mean, var, amax, amin, maximum, minimum, matmul, arange, tril, triu, transpose,
    swapaxes, broadcast_to,
)  # fmt: skip
WORDS: dict[str, Word] = {f.__name__: _word(f) for f in FUNCTIONS}
