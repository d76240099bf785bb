"""Kept kernels: running sums and products, places of extremes, masks of any length, and what no vector instruction does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = [pytest.mark.slow(but=2), pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")]
SHAPE = (5, 24)


def kernel(word: Callable[[Any, Any], Any], dtype: str, shape: tuple[int, ...], result: str) -> Any:
    """One word from a tile of SHAPE to another one, on one vector core."""

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor(SHAPE, dtype), Y: T.Tensor(shape, result)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub(SHAPE, dtype)
            y = T.alloc_ub(shape, result)
            with T.Scope("V"):
                if vid == 0:
                    T.copy(X, x)
                    T.barrier_all()
                    word(x, y)
                    T.barrier_all()
                    T.copy(y, Y)

    return main


def numbers(dtype: str) -> np.ndarray:
    found = np.random.default_rng(0).integers(-8, 9, SHAPE)
    return found.astype({"float32": np.float32, "float16": np.float16, "int32": np.int32}[dtype])


@pytest.mark.few(6)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_sums(dtype: str, dim: int, reverse: bool) -> None:
    x = numbers(dtype)
    want = np.flip(np.cumsum(np.flip(x, dim), dim), dim) if reverse else np.cumsum(x, dim)
    made = kernel(lambda x, y: T.cumsum(x, y, dim=dim, reverse=reverse), dtype, SHAPE, dtype)
    np.testing.assert_array_equal(made(x), want)


def test_running_products() -> None:
    x = np.random.default_rng(1).choice([-1.0, 1.0, 2.0, 0.5], SHAPE).astype(np.float32)
    made = kernel(lambda x, y: T.cumprod(x, y, dim=1), "float32", SHAPE, "float32")
    np.testing.assert_array_equal(made(x), np.cumprod(x, 1))


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("dim", [0, 1])
def test_the_first_place_of_an_extreme(dtype: str, dim: int) -> None:
    x, size = numbers(dtype), (SHAPE[1 - dim],)
    np.testing.assert_array_equal(kernel(lambda x, y: T.argmax(x, y, dim=dim), dtype, size, "int32")(x), x.argmax(dim))
    np.testing.assert_array_equal(kernel(lambda x, y: T.argmin(x, y, dim=dim), dtype, size, "int32")(x), x.argmin(dim))


def test_running_sums_of_bfloat16_are_rounded_once() -> None:
    x = np.random.default_rng(2).uniform(-1, 1, SHAPE).astype(ml_dtypes.bfloat16)
    made = kernel(lambda x, y: T.cumsum(x, y, dim=1), "bfloat16", SHAPE, "bfloat16")
    np.testing.assert_array_equal(made(x), np.cumsum(x.astype(np.float32), 1).astype(ml_dtypes.bfloat16))


def test_bfloat16_is_reduced_in_float32() -> None:
    x = np.random.default_rng(2).uniform(-1, 1, SHAPE).astype(ml_dtypes.bfloat16)
    made = kernel(lambda x, y: T.reduce_sum(x, y, dim=1), "bfloat16", SHAPE[:1], "bfloat16")
    np.testing.assert_array_equal(made(x), x.astype(np.float32).sum(1).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_mask_has_any_length(dtype: str) -> None:
    def larger(x: Any, y: Any) -> None:
        m = T.alloc_ub((16,), "uint8")
        T.tile.compare(m, x, 1, "GT")
        T.barrier_all()
        T.tile.select(y, m, x, 0.0, "VSEL_TENSOR_SCALAR_MODE")

    x = numbers(dtype)
    np.testing.assert_array_equal(kernel(larger, dtype, SHAPE, dtype)(x), np.where(x > 1, x, 0))
