"""Numbers of a call that have a default in the function, and what is the same in each call."""

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

X = np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 8)


@tile_eg.jit
def scaled(x: T.Tensor((5, 8), "float32"), s: float, eps=0.5, axis=-1, bias=None):
    y = x / (T.sum(T.abs(x), axis=axis, keepdims=True) + eps) * s
    return y if bias is None else y + bias


def test_a_call_of_whole_tensors_may_leave_them_out() -> None:
    sums = np.abs(X).sum(-1, keepdims=True)
    np.testing.assert_allclose(scaled(X, 2), X / (sums + 0.5) * 2, rtol=1e-5)
    np.testing.assert_allclose(scaled(X, s=2, eps=1.0), X / (sums + 1) * 2, rtol=1e-5)
    with pytest.raises(TileError, match="s missing"):
        scaled(X)


@tile_eg.jit(out_idx=[1])
def clipped(B: int = 4) -> Any:
    M = T.symbolic("M")

    @T.prim_func
    def kernel(X: T.Tensor((M, 8), "float32"), Y: T.Tensor((M, 8), "float32"), n: T.int32 = 3, s=2.0, negative=True):
        with T.Kernel(T.ceildiv(M, B)) as b:
            x = T.alloc_shared((B, 8), "float32")
            T.copy(X[b * B, 0], x)
            for i, j in T.Parallel(B, 8):
                x[i, j] = T.if_then_else(j < n, x[i, j] * s, 0)
            if negative:
                for i, j in T.Parallel(B, 8):
                    x[i, j] = -x[i, j]
            T.copy(x, Y[b * B, 0])

    return kernel


def test_a_kernel_of_tiles_has_them_too() -> None:
    first = np.arange(8) < 3
    np.testing.assert_allclose(clipped()(X), -2 * X * first)
    np.testing.assert_allclose(clipped()(X, s=0.5), -X * first / 2)
    np.testing.assert_allclose(clipped()(X, 7), -2 * X * (np.arange(8) < 7))
