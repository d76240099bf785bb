"""Reductions whose result has another element type than what is reduced."""

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
