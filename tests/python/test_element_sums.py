"""`T.atomic_add` of single elements in `T.Parallel`: windows, rows that an index picks, single elements, conditions."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T  # noqa: N812
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.jit import TileKernel

N, V, D = 40, 10, 32
RNG = np.random.default_rng(0)
ROWS, VALUES = RNG.standard_normal((N, D)).astype(np.float32), RNG.standard_normal(N).astype(np.float32)
PICKED = RNG.integers(-1, V, N).astype(np.int32)


def kernel_of(added):
    """The kernel whose blocks of 16 rows add by the macro `added(W, block, x, at)`."""

    @T.prim_func
    def sums(X: T.Tensor((N, D), "float32"), At: T.Tensor((N,), "int32"), W: T.Tensor((V, D), "float32")):  # noqa: N803
        with T.Kernel(T.ceildiv(N, 16)) as block:
            x = T.alloc_shared((16, D), "float32")
            at = T.alloc_shared((16,), "int32")
            T.copy(X[block * 16, 0], x)
            T.copy(At[block * 16], at)
            added(W, block, x, at)

    return tile_eg.compile(sums)


def given(kernel, *arrays, shape=(V, D)):
    held = np.zeros(shape, np.float32)
    kernel(*arrays, held)
    return held


def summed(values, at=PICKED):
    want = np.zeros((V, *values.shape[1:]), np.float32)
    np.add.at(want, at[at >= 0], values[at >= 0])
    return want


@pytest.mark.slow
def test_rows_are_added_where_an_index_that_is_read_says():
    @T.macro
    def added(W, block, x, at):  # noqa: N803
        for i, j in T.Parallel(16, D):
            T.atomic_add(W[at[i], j], x[i, j])

    at = np.abs(PICKED)
    np.testing.assert_allclose(given(kernel_of(added), ROWS, at), summed(ROWS, at), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_what_is_added_may_be_computed_and_rows_beyond_the_end_add_nothing():
    @T.macro
    def added(W, block, x, at):  # noqa: N803
        for i, j in T.Parallel(16, D):
            T.atomic_add(W[at[i], j], T.exp(x[i, j]) * 2.0)

    at = np.abs(PICKED)
    np.testing.assert_allclose(given(kernel_of(added), ROWS, at), summed(2 * np.exp(ROWS), at), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_row_whose_condition_does_not_hold_is_added_nowhere():
    @T.macro
    def added(W, block, x, at):  # noqa: N803
        for i, j in T.Parallel(16, D):
            if at[i] >= 0:
                T.atomic_add(W[at[i], j], x[i, j])

    np.testing.assert_allclose(given(kernel_of(added), ROWS, PICKED), summed(ROWS), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_elements_whose_condition_does_not_hold_add_nothing():
    @T.macro
    def added(W, block, x, at):  # noqa: N803
        for i, j in T.Parallel(16, D):
            if block * 16 + i < N and x[i, j] > 0:
                T.atomic_add(W[0, j], x[i, j])

    np.testing.assert_allclose(given(kernel_of(added), ROWS, PICKED)[0], np.maximum(ROWS, 0).sum(0), rtol=1e-5)


@pytest.mark.slow
def test_a_window_is_added_as_a_whole():
    @T.macro
    def added(W, block, x, at):  # noqa: N803
        for j, i in T.Parallel(D, 2):
            T.atomic_add(W[4 + i, j], x[i, j])

    kernel = kernel_of(added)
    want = ROWS.reshape(-1, D)[[0, 16, 32]].sum(0), ROWS[[1, 17, 33]].sum(0)
    np.testing.assert_allclose(given(kernel, ROWS, PICKED)[4:6], want, rtol=1e-5, atol=1e-5)


@T.prim_func
def histogram(X: T.Tensor((N,), "float32"), At: T.Tensor((N,), "int32"), W: T.Tensor((V,), "float32")):  # noqa: N803
    with T.Kernel(T.ceildiv(N, 8)) as block:
        x = T.alloc_shared((8,), "float32")
        at = T.alloc_shared((8,), "int32")
        T.copy(X[block * 8], x)
        T.copy(At[block * 8], at)
        for i in T.Parallel(8):
            T.atomic_add(W[at[i]], x[i])


@pytest.mark.slow
def test_single_elements_are_added_one_by_one():
    at = np.abs(PICKED)
    got = given(tile_eg.compile(histogram), VALUES, at, shape=(V,))
    np.testing.assert_allclose(got, summed(VALUES, at), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_an_index_outside_of_the_tensor_is_told():
    with pytest.raises(TileError, match="an index of `W` that is read is -1"):
        given(tile_eg.compile(histogram), VALUES, PICKED, shape=(V,))


@T.prim_func
def kept(X: T.Tensor((N, D), "float32"), At: T.Tensor((N,), "int32"), W: T.Tensor((V, D), "float32")):  # noqa: N803
    with T.Kernel(T.ceildiv(N, 8), is_npu=True) as (block, half):
        x = T.alloc_ub((8, D), "float32")
        at = T.alloc_ub((8,), "int32")
        T.copy(X[block * 8, 0], x)
        T.copy(At[block * 8], at)
        T.barrier_all()
        if half == 0:
            for i, j in T.Parallel(8, D):
                if at[i] >= 0:
                    T.atomic_add(W[at[i], j], x[i, j] * 2.0)


@pytest.mark.slow
def test_a_kernel_that_is_kept_adds_so_too_with_flags_of_its_own():
    np.testing.assert_allclose(given(tile_eg.compile(kept), ROWS, PICKED), 2 * summed(ROWS), rtol=1e-5, atol=1e-5)


@T.prim_func
def pairs(X: T.Tensor((20, 20), "float32"), At: T.Tensor((20,), "int32"), W: T.Tensor((V, V), "float32")):  # noqa: N803
    with T.Kernel(2, 2) as (bx, by):
        x = T.alloc_shared((16, 16), "float32")
        row = T.alloc_shared((16,), "int32")
        col = T.alloc_shared((16,), "int32")
        T.copy(X[bx * 16, by * 16], x)
        T.copy(At[bx * 16], row)
        T.copy(At[by * 16], col)
        for i, j in T.Parallel(16, 16):
            T.atomic_add(W[row[i], col[j]], x[i, j])


@T.prim_func
def pairs_kept(X: T.Tensor((20, 20), "float32"), At: T.Tensor((20,), "int32"), W: T.Tensor((V, V), "float32")):  # noqa: N803
    with T.Kernel(1, is_npu=True) as (block, half):
        x = T.alloc_ub((20, 24), "float32")
        at = T.alloc_ub((24,), "int32")
        T.copy(X[0, 0], x[:, 0:20])
        T.copy(At[0], at[0:20])
        T.barrier_all()
        if half == 0:
            for i, j in T.Parallel(20, 20):
                T.atomic_add(W[at[i], at[j]], x[i, j] * 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [pairs, pairs_kept], ids=["searched", "kept"])
def test_both_places_may_be_picked(kernel):
    x, at, want = ROWS[:20, :20].copy(), np.abs(PICKED[:20]), np.zeros((V, V), np.float32)
    np.add.at(want, (at[:, None], at[None, :]), x)
    np.testing.assert_allclose(given(tile_eg.compile(kernel), x, at, shape=(V, V)), want, rtol=1e-5, atol=1e-5)


TILE = """kernel sums[R=40, N=32, V=10](X: f32[R, N], at: i32[R]) -> G: f32[V, N] {
  grid b = ceildiv(R, 8)
  shared t: i32[8], x: f32[8, N]
  t = at[b*8]
  x = X[b*8, 0]
  parallel (i, j) in (8, N) { atomic G[t[i], j] += x[i, j] }
}
"""


@pytest.mark.slow
def test_an_element_loop_of_a_tile_text_adds_so_too():
    got = TileKernel(load_text(TILE, "sums.tile"))(ROWS, np.abs(PICKED))
    np.testing.assert_allclose(got, summed(ROWS, np.abs(PICKED)), rtol=1e-5, atol=1e-5)


def test_a_word_of_several_elements_says_the_one_of_each():
    @T.macro
    def added(W, block, x, at):  # noqa: N803
        for i, j in T.Parallel(16, D // 4):
            T.atomic_addx4(W[0, j * 4], x[i, j * 4])

    with pytest.raises(TileError, match=r"write T\.atomic_add\(C\[i, j\], x\[i, j\]\) for each element"):
        kernel_of(added)


@pytest.mark.slow
@pytest.mark.parametrize("prints", [False, True])
def test_an_index_beyond_the_end_counts_nothing(prints):
    @T.prim_func
    def counts(I: T.Tensor((20,), "int32"), C: T.Tensor((8,), "float32")):  # noqa: N803, E741
        with T.Kernel(2) as block:
            at = T.alloc_shared((16,), "int32")
            T.copy(I[block * 16], at)
            if prints:
                T.printf("")
            for i in T.Parallel(16):
                T.atomic_add(C[at[i]], 1.0)

    at, held = np.arange(20, dtype=np.int32) % 8, np.zeros(8, np.float32)
    tile_eg.compile(counts)(at, held)
    np.testing.assert_array_equal(held, np.bincount(at, minlength=8))
