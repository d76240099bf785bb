"""Reductions, running sums and other words whose result has another element type than their operand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
M, N = 13, 21
MIXED = (("float16", "float32"), ("bfloat16", "float32"), ("int16", "int32"), ("int32", "float32"), ("uint8", "float16"))


def reduced(dtype: str, out: str, in_order: bool, shape: tuple[int, int] = (M, N)) -> Any:
    """Sums down columns, sums of rows beside what was there, and rows' largest elements; in order by a branch that is read."""
    rows, cols = shape

    @tile_eg.jit(out_idx=[-3, -2, -1])
    def make() -> Any:
        @T.prim_func
        def kernel(
            X: T.Tensor((rows, cols), dtype), n: T.Tensor((1,), "int32"),
            down: T.Tensor((cols,), out), across: T.Tensor((rows,), out), most: T.Tensor((rows,), out),
        ):  # fmt: skip
            with T.Kernel(1) as _:
                x = T.alloc_shared((rows, cols), dtype)
                d = T.alloc_shared((cols,), out)
                a = T.alloc_shared((rows,), out)
                m = T.alloc_shared((rows,), out)
                T.copy(X[0, 0], x)
                T.fill(a, 3)
                if in_order and n[0] > 0:
                    T.fill(a, 5)
                T.reduce_sum(x, d, dim=0)
                T.reduce_sum(x, a, dim=1, clear=False)
                T.reduce_max(x, m, dim=1)
                T.copy(d, down[0])
                T.copy(a, across[0])
                T.copy(m, most[0])

        return kernel

    return make


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(("dtype", "out"), MIXED)
@pytest.mark.few(4)
def test_a_result_of_another_type_holds_the_reduction_of_all_digits(
    dtype: str, out: str, in_order: bool
) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-60, 120, (M, N)).clip(0 if dtype == "uint8" else None)
    array = x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    down, across, most = reduced(dtype, out, in_order)()(array, np.ones(1, np.int32))
    assert np.allclose(down, x.sum(0), rtol=1e-3)
    assert np.allclose(across, x.sum(1) + (5 if in_order else 3), rtol=1e-3)
    assert np.array_equal(most.astype(np.int64), x.max(1))


def test_a_sum_of_short_floats_is_not_rounded_on_its_way_to_a_wider_result() -> None:
    x = np.full((M, N), 60000, np.float16)
    down, _, _ = reduced("float16", "float32", False)()(x, np.ones(1, np.int32))
    assert np.array_equal(down, x.astype(np.float32).sum(0))


@pytest.mark.slow
def test_a_sum_of_short_whole_numbers_keeps_what_a_wider_result_holds() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(20000, 30000, (M, N)).astype(np.int16)
    down, across, _ = reduced("int16", "int32", False)()(x, np.ones(1, np.int32))
    assert np.array_equal(down, x.astype(np.int64).sum(0))
    assert np.array_equal(across, x.astype(np.int64).sum(1) + 3)


def test_a_result_that_cannot_hold_it_is_refused_in_order_too() -> None:
    with pytest.raises(TileError) as told:
        reduced("int32", "int16", True)().get_kernel_source()
    assert any("i32 is not reduced into i16" in text for text, _ in told.value.notes)


@pytest.mark.slow
@pytest.mark.parametrize("in_order", [False, True])
def test_words_of_whole_tiles_cast_what_they_give(in_order: bool) -> None:
    @tile_eg.jit(out_idx=[-5, -4, -3, -2, -1])
    def make() -> Any:
        @T.prim_func
        def kernel(
            X: T.Tensor((M, N), "bfloat16"), n: T.Tensor((1,), "int32"), sums: T.Tensor((M, N), "float32"),
            at: T.Tensor((M,), "int32"), turned: T.Tensor((N, M), "float32"), spread: T.Tensor((M, N), "float32"),
            sizes: T.Tensor((M,), "float32"),
        ):  # fmt: skip
            with T.Kernel(1) as _:
                x = T.alloc_shared((M, N), "bfloat16")
                s = T.alloc_shared((M, N), "float32")
                a = T.alloc_shared((M,), "int32")
                t = T.alloc_shared((N, M), "float32")
                w = T.alloc_shared((M, N), "float32")
                z = T.alloc_shared((M,), "float32")
                T.copy(X[0, 0], x)
                T.fill(w, 0)
                if in_order and n[0] > 1:
                    T.fill(w, 7)
                T.cumsum(x, s, dim=1)
                T.argmax(x, a, dim=1)
                T.transpose(x, t)
                T.tile.broadcast(w, x[2, :])
                T.tile.axpy(w, x, 2.0)
                T.reduce_abssum(x, z, dim=1)
                T.copy(s, sums[0, 0])
                T.copy(a, at[0])
                T.copy(t, turned[0, 0])
                T.copy(w, spread[0, 0])
                T.copy(z, sizes[0])

        return kernel

    x = np.random.default_rng(0).integers(-99, 99, (M, N)).astype(ml_dtypes.bfloat16)
    f = x.astype(np.float32)
    sums, at, turned, spread, sizes = make()(x, np.ones(1, np.int32))
    assert np.array_equal(sums, np.cumsum(f, 1))
    assert np.array_equal(at, f.argmax(1))
    assert np.array_equal(turned, f.T)
    assert np.array_equal(spread, f[2] + 2 * f)
    assert np.array_equal(sizes, np.abs(f).sum(1))


@pytest.mark.slow
def test_running_sums_of_large_whole_numbers_are_exact() -> None:
    @tile_eg.jit(out_idx=[-2, -1])
    def make() -> Any:
        @T.prim_func
        def kernel(X: T.Tensor((M, N), "int32"), Y: T.Tensor((M, N), "int32"), at: T.Tensor((M,), "int32")):
            with T.Kernel(1) as _:
                x = T.alloc_shared((M, N), "int32")
                y = T.alloc_shared((M, N), "int32")
                a = T.alloc_shared((M,), "int32")
                T.copy(X[0, 0], x)
                T.cumsum(x, y, dim=1)
                T.argmax(x, a, dim=1)
                T.copy(y, Y[0, 0])
                T.copy(a, at[0])

        return kernel

    x = np.random.default_rng(0).integers(0, 1 << 25, (M, N)).astype(np.int32)
    sums, at = make()(x)
    assert np.array_equal(sums, np.cumsum(x, 1))
    assert np.array_equal(at, x.argmax(1))
