"""Rows that are a fixed number apart, loaded and stored: one step of a Haar transform down the rows."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def haar(M, N, B=32, dtype="float32"):
    @T.prim_func
    def haar(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, B)) as b:
            x = T.alloc_shared((B, N), dtype)
            T.copy(X[b * B, 0], x)
            for i, j in T.Parallel(B // 2, N):
                Y[b * B + 2 * i, j] = (x[2 * i, j] + x[2 * i + 1, j]) * 0.5
                Y[b * B + 2 * i + 1, j] = (x[2 * i, j] - x[2 * i + 1, j]) * 0.5

    return haar


@pytest.mark.slow
@pytest.mark.parametrize("rows, columns", [(64, 96), (50, 33)])
def test_neighbouring_rows_are_added_and_subtracted(rows: int, columns: int) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (rows, columns)).astype(np.float32)
    want = np.empty_like(x)
    want[0::2], want[1::2] = (x[0::2] + x[1::2]) * np.float32(0.5), (x[0::2] - x[1::2]) * np.float32(0.5)
    np.testing.assert_array_equal(haar(rows, columns)(x), want)
