"""What lies beyond the end of a tensor is not moved, in kernels that are kept, by single rows and numbers as by tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

M = T.symbolic("M")
SWITCHES = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}


@tile_eg.jit(out_idx=[2], pass_configs=SWITCHES)
@T.prim_func
def row_by_row(X: T.Tensor((M, 64), "float"), N: T.Tensor((M,), "float"), Y: T.Tensor((M, 64), "float")):
    """One row for each vector core, times its number."""
    with T.Kernel(T.ceildiv(M, 2), is_npu=True) as (cid, vid):
        x, n = T.alloc_ub((1, 64), "float"), T.alloc_ub((1,), "float")
        with T.Scope("V"):
            T.copy(X[cid * 2 + vid, 0], x)
            T.copy(N[cid * 2 + vid], n)
            T.barrier_all()
            T.tile.mul(x, x, n[0])
            T.barrier_all()
            T.copy(x, Y[cid * 2 + vid, 0])


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 4, 5])
def test_a_row_beyond_the_end_is_not_moved(m: int) -> None:
    rng: Any = np.random.default_rng(m)
    x, n = rng.standard_normal((m, 64)).astype(np.float32), rng.standard_normal(m).astype(np.float32)
    np.testing.assert_allclose(row_by_row(x, n), x * n[:, None], rtol=1e-6)


@tile_eg.jit(out_idx=[-1])
def rows_of_a_branch(S: int = 70, B: int = 32):
    @T.prim_func
    def attended(
        X: T.Tensor((S, B), "float16"),
        Q: T.Tensor((B, B), "float16"),
        at: T.Tensor((3,), "int32"),
        Y: T.Tensor((3 * B, B), "float"),
    ):
        with T.Kernel(3) as b:
            x, q, p = (T.alloc_shared((B, B), "float16") for _ in range(3))
            scores, y = (T.alloc_fragment((B, B), "float") for _ in range(2))
            T.copy(Q[0, 0], q)
            if at[b] > 40:
                T.copy(X[at[b], 0], x)
            else:
                T.copy(X[at[b] + B, 0], x)
            T.gemm(q, x, scores, transpose_B=True, clear_accum=True)
            T.copy(scores, p)
            T.gemm(p, x, y, clear_accum=True)
            T.copy(y, Y[b * B, 0])

    return attended


@pytest.mark.slow
def test_what_a_branch_leaves_of_a_tile_is_no_more_than_the_tile() -> None:
    rng: Any = np.random.default_rng(0)
    x, q, at = rng.integers(-2, 3, (70, 32)), rng.integers(-1, 2, (32, 32)), np.array([0, 50, 20], np.int32)
    parts = [x[start : start + 32] for start in (32, 50, 52)]
    y = rows_of_a_branch()(x.astype(np.float16), q.astype(np.float16), at)
    np.testing.assert_array_equal(y, np.concatenate([q @ part.T @ part for part in parts]))
