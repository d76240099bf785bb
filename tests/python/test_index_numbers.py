"""An index is a number where a value stands: a bias that grows with the distance of two positions (ALiBi)."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def biased(M, N, BM=32, BN=64):
    @T.prim_func
    def biased(S: T.Tensor((M, N), "float16"), slope: T.Tensor((M,), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            s = T.alloc_shared((BM, BN), "float16")
            w = T.alloc_shared((BM,), "float32")
            y = T.alloc_fragment((BM, BN), "float32")
            T.copy(S[bx * BM, by * BN], s)
            T.copy(slope[bx * BM], w)
            for i, j in T.Parallel(BM, BN):
                y[i, j] = s[i, j] + w[i] * (by * BN + j - bx * BM - i) / 2
            T.copy(y, Y[bx * BM, by * BN])

    return biased


@pytest.mark.slow
def test_a_bias_goes_with_the_distance_of_two_positions() -> None:
    rng = np.random.default_rng(0)
    s, slope = rng.uniform(-1, 1, (50, 100)).astype(np.float16), rng.uniform(-1, 1, 50).astype(np.float32)
    distance = (np.arange(100) - np.arange(50)[:, None]).astype(np.float32)
    np.testing.assert_allclose(biased(50, 100)(s, slope), s + slope[:, None] * distance / 2, rtol=1e-5, atol=1e-5)
