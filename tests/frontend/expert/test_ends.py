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
