"""Kept kernels: rows of UB that begin between blocks of 32 bytes, columns of tensors, elements of tensors that are written."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = [pytest.mark.slow(but=1), pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")]
ROWS, COLS = 13, 33
A = np.random.default_rng(0).uniform(-2, 2, (ROWS, COLS)).astype(np.float32)
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int32": np.int32, "int8": np.int8}


def doubled(wide: int) -> Any:
    """Twice the first columns of a tensor, whose tiles have as many; the last tile ends early."""

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((ROWS, COLS), "float32"), Y: T.Tensor((ROWS, wide), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((8, wide), "float32")
            with T.Scope("V"):
                T.copy(X[vid * 8, 0], x)
                T.barrier_all()
                T.tile.add(x, x, x)
                T.barrier_all()
                T.copy(x, Y[vid * 8, 0])

    return main


def test_rows_that_are_one_run_are_copied_as_one_where_they_end_early() -> None:
    kernel = doubled(COLS)
    assert "SetValue" not in kernel.get_kernel_source()
    np.testing.assert_array_equal(kernel(A), 2 * A)


@pytest.mark.parametrize("wide", [1, 5, 30])
def test_rows_with_gaps_in_the_tensor_are_copied_element_by_element(wide: int) -> None:
    np.testing.assert_array_equal(doubled(wide)(A), 2 * A[:, :wide])


def test_a_note_says_how_wide_rows_would_be_copied_at_once() -> None:
    assert any("rows of 32 elements would" in note.text for note in doubled(30).kernel.notes)


def test_a_part_that_begins_anywhere_is_copied_and_reduced() -> None:
    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def main(X: T.Tensor((ROWS, COLS), "float32"), Y: T.Tensor((16, 10), "float32"), S: T.Tensor((16,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((8, COLS), "float32")
            y = T.alloc_ub((8, 10), "float32")
            s = T.alloc_ub((8,), "float32")
            with T.Scope("V"):
                T.copy(X[vid * 8, 0], x)
                T.barrier_all()
                T.copy(x[:, 21:31], y)
                T.barrier_all()
                T.reduce_max(y, s, dim=1)
                T.barrier_all()
                T.copy(y, Y[vid * 8, 0])
                T.copy(s, S[vid * 8])

    y, s = main(A)
    np.testing.assert_array_equal(y[:ROWS], A[:, 21:31])
    np.testing.assert_array_equal(s[:ROWS], A[:, 21:31].max(1))


@pytest.mark.parametrize("word", ["copy", "atomic_add"])
def test_a_part_that_begins_between_blocks_in_some_trips_is_moved(word: str) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            with T.Scope("V"):
                T.copy(X, x)
                T.barrier_all()
                if vid == 0:
                    for k in T.serial(16):
                        if word == "copy":
                            T.copy(x[k * 4], Y[60 - k * 4], [4])
                        else:
                            T.atomic_add(Y[60 - k * 4], x[k * 4], [4])
                        T.barrier_all()

    np.testing.assert_array_equal(main(A.ravel()[:64]), A.ravel()[:64].reshape(16, 4)[::-1].ravel())


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_copied_from_tensor_to_tensor(dtype: str) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((4, 64), dtype), Y: T.Tensor((4,), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            T.barrier_all()
            if vid == 0:
                for i in T.serial(4):
                    Y[i] = X[i, 2 * i]

    x = np.arange(256).reshape(4, 64).astype(DTYPES[dtype])
    np.testing.assert_array_equal(main(x), x[np.arange(4), 2 * np.arange(4)])


def test_what_the_scalar_unit_computes_is_stored_in_a_tensor() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((4, 8), "float32"), Y: T.Tensor((4,), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            T.barrier_all()
            if vid == 0:
                total = T.alloc_var("float32", init=0.0)
                for i in T.serial(4):
                    total = total + X[i, 3]
                    Y[i] = total * 2.0

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_array_equal(main(x), 2 * np.cumsum(x[:, 3]))


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_column_of_a_tensor_is_a_vector(dtype: str) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((ROWS, 9), dtype), Y: T.Tensor((16, 5), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((8,), dtype)
            with T.Scope("V"):
                T.copy(X[vid * 8 : vid * 8 + 8, 7], x)
                T.barrier_all()
                for k in T.serial(5):
                    T.copy(x, Y[vid * 8 : vid * 8 + 8, k])

    x = np.random.default_rng(1).integers(-9, 9, (ROWS, 9)).astype(DTYPES[dtype])
    np.testing.assert_array_equal(main(x)[:ROWS], np.repeat(x[:, 7:8], 5, 1))


def test_a_tile_of_any_size_is_transposed() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((6, 10), "bfloat16"), Y: T.Tensor((10, 6), "bfloat16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((6, 10), "bfloat16")
            y = T.alloc_ub((10, 6), "bfloat16")
            with T.Scope("V"):
                if vid == 0:
                    T.copy(X, x)
                    T.barrier_all()
                    T.copy(x, y, transpose=True)
                    T.barrier_all()
                    T.copy(y, Y)

    x = np.arange(60).reshape(6, 10).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(main(x), x.T)


@pytest.mark.parametrize("word", ["add", "max"])
@pytest.mark.parametrize("shape", [(8, 1), (1, COLS)])
def test_a_column_or_a_row_stands_beside_a_tile(word: str, shape: tuple[int, int]) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((8, COLS), "float32"), V: T.Tensor(shape, "float32"), Y: T.Tensor((8, COLS), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((8, COLS), "float32")
            v = T.alloc_ub(shape, "float32")
            with T.Scope("V"):
                if vid == 0:
                    T.copy(X, x)
                    T.copy(V, v)
                    T.barrier_all()
                    if word == "add":
                        T.tile.add(x, x, v)
                    else:
                        T.tile.max(x, x, v)
                    T.barrier_all()
                    T.copy(x, Y)

    v = np.random.default_rng(2).uniform(-2, 2, shape).astype(np.float32)
    np.testing.assert_array_equal(main(A[:8], v), (A[:8] + v) if word == "add" else np.maximum(A[:8], v))
