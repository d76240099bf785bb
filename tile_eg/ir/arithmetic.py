"""The arithmetic of the reference meaning: NumPy arrays, each operation rounded once to its result's dtype."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "ln": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "abs": np.abs, "relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid, "tanh": np.tanh, "neg": np.negative,
}  # fmt: skip
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
REDUCE: dict[str, tuple[Callable[..., Array], float]] = {
    "max": (np.max, -np.inf), "min": (np.min, np.inf), "sum": (np.sum, 0.0),
}  # fmt: skip


def unary(name: str, x: Array) -> Array:
    """One function of each element, computed in f32 at least and rounded to x's dtype."""
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    return UNARY[name](wide).astype(x.dtype)


def binary(name: str, x: Array, y: Array) -> Array:
    """Both in one dtype, which is the result's. f32 holds the exact result of a 16-bit operation well enough to round once."""
    if x.dtype.itemsize < 4:
        return BINARY[name](x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return BINARY[name](x, y)


def reduce(name: str, x: Array, axis: int) -> Array:
    """A reduction, accumulated in f32 and rounded to x's dtype."""
    f, _ = REDUCE[name]
    return np.asarray(f(x.astype(np.float32), axis=axis)).astype(x.dtype)


def matmul(a: Array, b: Array) -> Array:
    """f32 product of f16, bf16 or f32 operands."""
    return a.astype(np.float32) @ b.astype(np.float32)




