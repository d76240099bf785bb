"""In the order of its statements, too, a kernel has as many rows as indices that pick them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")]
M, N, R, BM = 13, 40, 20, 8


@cache
def reduced(from_tensor: bool) -> Any:
    """Sums and largest elements down gathered rows, sums along them, and the rows; in order by a branch that is read."""

    @tile_eg.jit(out_idx=[-4, -3, -2, -1])
    @T.prim_func
    def kernel(
        X: T.Tensor((R, N), "float32"), Q: T.Tensor((M,), "int32"), n: T.Tensor((1,), "int32"), down: T.Tensor((2, N), "float32"),
        most: T.Tensor((2, N), "float32"), along: T.Tensor((M,), "float32"), rows: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as b:
            x = T.alloc_shared((BM, N), "float32")
            q = T.alloc_shared((BM,), "int32")
            d = T.alloc_fragment((N,), "float32")
            m = T.alloc_fragment((N,), "float32")
            a = T.alloc_fragment((BM,), "float32")
            T.copy(Q[b * BM], q)
            T.fill(x, 3)
            if n[0] > 0:
                for i, j in T.Parallel(BM, N):
                    x[i, j] = X[Q[b * BM + i], j] if from_tensor else X[q[i], j]
                T.reduce_sum(x, d, dim=0)
                T.reduce_max(x, m, dim=0)
                T.reduce_sum(x, a, dim=1)
                T.copy(x, rows[b * BM, 0])
                T.copy(d, down[b, 0])
                T.copy(m, most[b, 0])
                T.copy(a, along[b * BM])

    return kernel


@pytest.mark.parametrize("from_tensor", [False, True])
def test_rows_that_no_index_picks_take_no_part(from_tensor: bool) -> None:
    rng = np.random.default_rng(0)
    x, q = rng.uniform(-3, -1, (R, N)).astype(np.float32), rng.integers(0, R, M).astype(np.int32)
    down, most, along, rows = reduced(from_tensor)(x, q, np.ones(1, np.int32))
    parts = x[q[:BM]], x[q[BM:]]
    np.testing.assert_array_equal(rows, x[q])
    np.testing.assert_allclose(down, [p.sum(0) for p in parts], rtol=1e-5)
    np.testing.assert_array_equal(most, [p.max(0) for p in parts])
    np.testing.assert_allclose(along, x[q].sum(1), rtol=1e-5)
