"""Rows by plain indices: the last vector core, and the last trips of a loop, may have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = pytest.mark.slow(but=1)
M, N = 29, 96


def rows_by_vector_core() -> Any:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(15, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            s = T.alloc_ub((1,), "float32")
            T.copy(X[cid * 2 + vid, 0], x)
            T.reduce_sum(x, s, dim=-1)
            T.tile.div(x, x, s[0])
            T.copy(x, Y[cid * 2 + vid, 0])

    return main


def rows_in_a_loop() -> Any:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            s = T.alloc_ub((1,), "float32")
            for r in T.serial(4):
                T.copy(X[cid * 8 + vid * 4 + r, 0], x)
                T.reduce_sum(x, s, dim=-1)
                T.tile.div(x, x, s[0])
                T.copy(x, Y[cid * 8 + vid * 4 + r, 0])

    return main


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [rows_by_vector_core, rows_in_a_loop])
def test_rows_behind_the_last_one_are_neither_read_nor_written(kernel: Any) -> None:
    x = np.random.default_rng(0).uniform(1, 2, (M, N)).astype(np.float32)
    np.testing.assert_allclose(kernel()(x), x / x.sum(1, keepdims=True), rtol=1e-5)


def test_a_padded_or_filled_row_behind_the_last_one_is_not_stored() -> None:
    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def main(X: T.Tensor((7, 90), "float32"), Y: T.Tensor((7, N), "float32"), Z: T.Tensor((7, N), "float32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            y = T.alloc_ub((N,), "float32")
            T.copy(X[cid * 2 + vid, 0], x, pad_value=-1.0)
            T.tile.fill(y, 3.0)
            T.copy(x, Y[cid * 2 + vid, 0])
            T.copy(y, Z[cid * 2 + vid, 0])

    x = np.random.default_rng(0).uniform(1, 2, (7, 90)).astype(np.float32)
    padded, filled = main(x)
    np.testing.assert_array_equal(padded, np.pad(x, ((0, 0), (0, 6)), constant_values=-1))
    assert (filled == 3).all()
