"""Buffers whose leading dimension is a ring of slots: `a[k % 2, :, :]`."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Alloc

RNG = np.random.default_rng(0)
A, B = (RNG.uniform(-1, 1, (64, 256)).astype(np.float16) for _ in range(2))


def product(slots: int):
    @T.prim_func
    def main(A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 256), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_L1((slots, 64, 64), "float16")
            b = T.alloc_L1((slots, 64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            for k in T.serial(4):
                T.copy(A[0, k * 64], a[k % slots, :, :])
                T.copy(B[0, k * 64], b[k % slots, :, :])
                T.gemm_v0(a[k % slots, :, :], b[k % slots, :, :], c, transpose_B=True, init=(k == 0))
            T.copy(c, C[0, 0])

    return tile_eg.compile(main, out_idx=[-1])


def test_each_trip_has_a_tile() -> None:
    assert [s.shape for s in product(2).kernel.body if isinstance(s, Alloc)] == [(64, 64)] * 3


def test_the_product_is_right() -> None:
    assert np.allclose(product(2)(A, B), A.astype(np.float32) @ B.T.astype(np.float32), atol=1e-3)


def test_how_many_slots_there_are_changes_nothing() -> None:
    assert product(2).kernel == product(3).kernel


def sums(first):
    """Each trip does `first(x, y, k)` and adds what is in its slot to y."""

    @T.prim_func
    def main(X: T.Tensor((4, 64), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_ub((2, 64), "float32")
            y = T.alloc_ub((64,), "float32")
            T.clear(y)
            for k in T.serial(4):
                first(X, x, y, k)
                for j in T.Parallel(64):
                    y[j] = y[j] + x[k % 2, j]
            T.copy(y, C[0])

    return tile_eg.compile(main, out_idx=[-1])


def test_an_element_loop_may_fill_a_slot() -> None:
    @T.macro
    def first(X, x, y, k):
        for j in T.Parallel(64):
            x[k % 2, j] = 3.0

    assert (sums(first)(np.zeros((4, 64), np.float32)) == 12).all()


def test_a_slot_that_another_trip_filled_is_not_there_yet() -> None:
    @T.macro
    def first(X, x, y, k):
        T.copy(X[k, 0], x[(k + 1) % 2, :])

    with pytest.raises(TileError, match="meet at `x`"):
        sums(first)(np.zeros((4, 64), np.float32))
