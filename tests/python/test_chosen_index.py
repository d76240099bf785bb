"""An index that an `if` decides, by data or by positions: `cur = T.if_then_else(flags[i] > 0, i, cur)`."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

X = np.random.default_rng(0).uniform(-1, 1, (16, 64)).astype(np.float32)
FLAGS = np.array([1, 5, 2, 7, 0, 9], np.int32)


@tile_eg.jit(out_idx=[-1], effort="none")
@T.prim_func
def last_flagged(F: T.Tensor((6,), "int32"), X: T.Tensor((16, 64), "float32"), Y: T.Tensor((6, 64), "float32")):
    with T.Kernel(1):
        flags, row = T.alloc_shared((6,), "int32"), T.alloc_shared((1, 64), "float32")
        T.copy(F, flags)
        cur = 0
        for i in T.serial(6):
            cur = T.if_then_else(flags[i] > 3, i, cur)
            T.copy(X[cur, 0], row)
            T.copy(row, Y[i, 0])


@tile_eg.jit(out_idx=[-1], effort="none")
@T.prim_func
def read_or_first(F: T.Tensor((6,), "int32"), X: T.Tensor((16, 64), "float32"), Y: T.Tensor((6, 64), "float32")):
    with T.Kernel(6) as b:
        row = T.alloc_shared((1, 64), "float32")
        at = T.if_then_else(F[b] != 7, F[b], 0)
        T.copy(X[at, 0], row)
        T.copy(row, Y[b, 0])


@pytest.mark.slow
def test_it_may_be_what_an_earlier_trip_chose() -> None:
    rows = np.maximum.accumulate(np.where(FLAGS > 3, np.arange(6), 0))
    np.testing.assert_array_equal(last_flagged(FLAGS, X), X[rows])


def test_it_may_be_read_or_a_number() -> None:
    np.testing.assert_array_equal(read_or_first(FLAGS, X), X[np.where(FLAGS != 7, FLAGS, 0)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_of_many_trips_it_is_a_variable_of_a_kernel_in_order() -> None:
    flags = np.random.default_rng(1).integers(0, 9, 40).astype(np.int32)

    @tile_eg.jit(out_idx=[-1], effort="none")
    @T.prim_func
    def flagged(F: T.Tensor((40,), "int32"), X: T.Tensor((40, 64), "float32"), Y: T.Tensor((40, 64), "float32")):
        with T.Kernel(1):
            row, cur = T.alloc_shared((1, 64), "float32"), 0
            for i in T.serial(40):
                cur = T.if_then_else(F[i] > 5, i, cur)
                T.copy(X[cur, 0], row)
                T.copy(row, Y[i, 0])

    x = np.random.default_rng(0).uniform(-1, 1, (40, 64)).astype(np.float32)
    np.testing.assert_array_equal(flagged(flags, x), x[np.maximum.accumulate(np.where(flags > 5, np.arange(40), 0))])
