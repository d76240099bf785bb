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


@pytest.mark.slow
def test_the_product_is_right() -> None:
    assert np.allclose(product(2)(A, B), A.astype(np.float32) @ B.T.astype(np.float32), atol=1e-3)


def test_how_many_slots_there_are_changes_no_statement() -> None:
    two, three = (product(n).kernel.body for n in (2, 3))
    assert [s.slots for s in two if isinstance(s, Alloc)] == [2, 2, 0]
    assert [s for s in two if not isinstance(s, Alloc)] == [s for s in three if not isinstance(s, Alloc)]


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


@pytest.mark.slow
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

    with pytest.raises(TileError, match="this part of `x` is read before anything is written to it"):
        sums(first)(np.zeros((4, 64), np.float32))


@pytest.mark.slow
def test_several_loops_may_use_the_same_slots() -> None:
    @T.prim_func
    def main(X: T.Tensor((4, 64), "float32"), C: T.Tensor((4, 64), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_ub((2, 64), "float32")
            y = T.alloc_ub((64,), "float32")
            T.clear(y)
            for k in T.serial(4):
                slot = k % 2
                T.copy(X[k, 0], x[slot, :])
                T.tile.add(y, y, x[slot, :])
            for k in T.serial(4):
                slot = k % 2
                T.copy(X[k, 0], x[slot, :])
                T.tile.mul(x[slot, :], x[slot, :], y)
                T.copy(x[slot, :], C[k, 0])

    x = RNG.uniform(-1, 1, (4, 64)).astype(np.float32)
    np.testing.assert_allclose(tile_eg.compile(main, out_idx=[-1])(x), x * x.sum(0), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_slot_may_be_filled_under_a_condition() -> None:
    @T.prim_func
    def main(X: T.Tensor((10, 64), "float32"), C: T.Tensor((10, 64), "float32")):
        with T.Kernel(4) as cid:
            x = T.alloc_ub((2, 64), "float32")
            for k in T.serial(3):
                if k * 4 + cid < 10:
                    T.copy(X[k * 4 + cid, 0], x[k % 2, :])
                    T.tile.add(x[k % 2, :], x[k % 2, :], 1.0)
                    T.copy(x[k % 2, :], C[k * 4 + cid, 0])

    x = RNG.uniform(-1, 1, (10, 64)).astype(np.float32)
    assert (tile_eg.compile(main, out_idx=[-1])(x) == x + 1).all()
