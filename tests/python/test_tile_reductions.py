"""`T.tile.reduce_max` and the like: the result first, a buffer for what is computed in between, and a part by `size`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

X = np.random.default_rng(0).uniform(-1, 1, (16, 64)).astype(np.float32)


@tile_eg.jit(out_idx=[-2, -1], effort="none")
@T.prim_func
def searched(X: T.Tensor((16, 64), "float32"), M: T.Tensor((16,), "float32"), S: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        x, m, s = T.alloc_ub((16, 64), "float32"), T.alloc_ub((16,), "float32"), T.alloc_ub((16,), "float32")
        tmp = T.alloc_ub((2, 64), "uint8")
        T.copy(X[0, 0], x)
        T.tile.reduce_max(m, x, tmp, dim=-1)
        T.tile.reduce_sum(s, x, tmp, dim=1, size=[16, 48])
        T.copy(m, M[0])
        T.copy(s, S[0])


@tile_eg.jit(out_idx=[-2, -1])
@T.prim_func
def kept(X: T.Tensor((16, 64), "float32"), M: T.Tensor((16,), "float32"), S: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        x, m, s = T.alloc_ub((16, 64), "float32"), T.alloc_ub((16,), "float32"), T.alloc_ub((16,), "float32")
        tmp = T.alloc_ub((2, 64), "uint8")
        T.copy(X[0, 0], x)
        T.barrier_all()
        T.tile.reduce_max(m, x, tmp, dim=-1)
        T.tile.reduce_sum(s, x, tmp, dim=1, size=[16, 48])
        T.barrier_all()
        T.copy(m, M[0])
        T.copy(s, S[0])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [searched, kept], ids=["searched", "kept"])
def test_rows_are_reduced_as_a_whole_or_in_part(kernel: Any) -> None:
    most, sums = kernel(X)
    np.testing.assert_array_equal(most, X.max(1))
    np.testing.assert_allclose(sums, X[:, :48].sum(1), rtol=1e-5, atol=1e-6)
