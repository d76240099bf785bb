"""`T.alloc_var` of a float that changes with what a loop loads: the kernel is done in the order of its statements."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

X = np.random.default_rng(0).uniform(-1, 1, (8, 64)).astype(np.float32)


@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_it_may_be_a_factor_of_the_tile_that_it_was_computed_from() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def decayed(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1):
            row = T.alloc_shared((1, 64), "float32")
            acc = T.alloc_var("float32", init=1.0)
            for i in T.serial(8):
                T.copy(X[i, 0], row)
                acc = acc * 0.5 + row[0, 0]
                for j, k in T.Parallel(1, 64):
                    row[j, k] = row[j, k] * acc
                T.copy(row, Y[i, 0])

    wanted, acc = [], np.float32(1)
    for row in X:
        acc = acc * np.float32(0.5) + row[0]
        wanted.append(row * acc)
    np.testing.assert_allclose(decayed(X), wanted, rtol=1e-6, atol=1e-7)
