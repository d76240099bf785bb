"""Loops over rows of which a condition leaves out those that a tensor does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.frontend.python import kernel_of
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import For, If, statements

N, D, B = 19, 33, 8
TEXT = """
kernel rows[N=19, B=8](X: f32[N, 33], at: i32[N], w: f32[33]) -> Y: f32[N, 33] {
  grid bx = ceildiv(N, B)
  shared x: f32[B, 33]
  FIRST
  for i in serial(B) { if bx*B + i < N { x[i, :] = X[PLACE, :] } }
  Y[bx*B, 0] = x
}
"""


def loop_of(first: str, place: str) -> For:
    kernel = load_text(TEXT.replace("FIRST", first).replace("PLACE", place), "t.tile").instantiate({})
    assert not any(isinstance(s, If) for s in statements(kernel.body))
    return next(s for s in statements(kernel.body) if isinstance(s, For))


@pytest.mark.parametrize("place", ["bx*B + i", "at[bx*B + i]"])
def test_a_copy_of_what_a_tensor_does_not_have_needs_no_condition(place: str) -> None:
    assert loop_of("", place).count is None


@pytest.mark.parametrize(("first", "place"), [("x = 0", "at[bx*B + i]"), ("", "i"), ("", "at[i]")])
def test_where_a_row_is_there_or_keeps_what_it_held_the_loop_ends_with_the_tensor(first: str, place: str) -> None:
    assert loop_of(first, place).count is not None


def summed(before: bool) -> Any:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((N, 32), "float32"), At: T.Tensor((N,), "int32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, B)) as bx:
            x = T.alloc_shared((B, 32), "float32")
            y = T.alloc_shared((B,), "float32")
            if before:
                T.fill(x, 9.0)
            for i in T.serial(B):
                if bx * B + i < N:
                    T.copy(X[At[bx * B + i], :], x[i, :])
            T.reduce_sum(x, y, dim=1)
            T.copy(y, Y[bx * B])

    return main


@pytest.mark.parametrize("before", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_rows_that_are_gathered_so_are_reduced(before: bool) -> None:
    x, at = np.random.default_rng(0).standard_normal((N, 32)).astype(np.float32), np.random.default_rng(1).permutation(N)
    found = summed(before)(x, at.astype(np.int32))
    np.testing.assert_allclose(found, x[at].sum(1), rtol=1e-5, atol=1e-5)


def test_rows_of_both_vector_cores_need_no_condition_either() -> None:
    @T.prim_func
    def main(X: T.Tensor((N, 32), "float32"), At: T.Tensor((N,), "int32"), Y: T.Tensor((N, 32), "float32")):
        with T.Kernel(T.ceildiv(N, B), is_npu=True) as (cid, vid):
            x = T.alloc_ub((B // 2, 32), "float32")
            for i in range(B // 2):
                row = cid * B + vid * (B // 2) + i
                if row < N:
                    T.copy(X[At[row], :], x[i, :])
            T.copy(x, Y[cid * B + vid * (B // 2), 0])

    assert not any(isinstance(s, If) for s in statements(kernel_of(main).body))


@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_a_row_that_begins_between_blocks_of_32_bytes_is_stored_by_way_of_one_that_does_not() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((N, D), "float32"), At: T.Tensor((N,), "int32"), Y: T.Tensor((N, D), "float32")):
        with T.Kernel(1):
            x = T.alloc_shared((N, D), "float32")
            T.printf("")
            T.copy(X, x)
            for i in T.serial(N):
                T.copy(x[i, :], Y[At[i], :])

    x, at = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32), np.random.default_rng(1).permutation(N)
    np.testing.assert_array_equal(main(x, at.astype(np.int32))[at], x)
