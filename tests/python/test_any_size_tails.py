"""Kernels of any size whose loops take a fixed number of trips: a tensor may end within the last one."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import NotSearched

N = T.dynamic("N")


@T.prim_func
def doubled(A: T.Tensor((16, N), "float32"), C: T.Tensor((16, N), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_shared((16, 32), "float32")
        for j in T.serial(2):
            T.copy(A[0, j * 32], x)
            T.tile.add(x, x, x)
            T.copy(x, C[0, j * 32])


@T.prim_func
def carried(A: T.Tensor((16, N), "float32"), C: T.Tensor((16, N), "float32"), V: T.Tensor((16,), "float32")):
    with T.Kernel(1) as _:
        x, u = T.alloc_shared((16, 32), "float32"), T.alloc_shared((16,), "float32")
        T.fill(x, 1.0)
        for j in T.serial(2):
            T.copy(x, C[0, j * 32])
            T.copy(A[0, j * 32], x)
        T.reduce_sum(x, u, dim=1)
        T.copy(u, V)


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, 64])
def test_a_tensor_ends_within_the_last_of_a_fixed_number_of_trips(n: int) -> None:
    a = np.arange(16 * n, dtype=np.float32).reshape(16, n)
    np.testing.assert_array_equal(tile_eg.jit(out_idx=[-1], effort="none")(doubled)(a), a * 2)


@pytest.mark.slow
def test_a_size_at_which_a_kernel_is_not_searched_has_no_text_of_large_ones() -> None:
    with pytest.raises(NotSearched, match="change from trip to trip"):
        tile_eg.jit(out_idx=[1, 2], effort="none")(carried)(np.ones((16, 40), np.float32))
