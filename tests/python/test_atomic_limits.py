"""`T.atomic_max` and `T.atomic_min`, and numbers that are added to an element, among blocks that run in no order."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.python.written import prim_func
from tile_eg.errors import TileError

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
rng = np.random.default_rng(0)


@tile_eg.jit
def column_limits(M, N, rows, dtype):
    @T.prim_func
    def limits(X: T.Tensor((M, N), dtype), High: T.Tensor((N,), dtype), Low: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(M, rows), is_npu=True) as (cid, _):
            x = T.alloc_shared((rows, N), dtype)
            high = T.alloc_shared((N,), dtype)
            low = T.alloc_shared((N,), dtype)
            T.copy(X[cid * rows, 0], x)
            T.reduce_max(x, high, dim=0)
            T.reduce_min(x, low, dim=0)
            T.atomic_max(High[0], high)
            T.tile.atomic_min(Low[0], low)

    return limits


@pytest.mark.slow
@pytest.mark.parametrize(("M", "dtype"), [(50, "float32"), (50, "float16"), (48, "int32")])
def test_limits_of_all_blocks_and_of_what_was_there(M, dtype):
    x = (rng.uniform(-2, 2, (M, 37)) * 10).astype(dtype)
    high, low = np.full(37, 8, dtype), np.full(37, -8, dtype)
    column_limits(M, 37, 16, dtype)(x, high, low)
    np.testing.assert_array_equal(high, np.maximum(x.max(axis=0), 8))
    np.testing.assert_array_equal(low, np.minimum(x.min(axis=0), -8))


@tile_eg.jit
def picked(N, size, K):
    @T.prim_func
    def largest(X: T.Tensor((N,), "float32"), I: T.Tensor((N,), "int32"), Y: T.Tensor((K,), "float32")):  # noqa: E741
        with T.Kernel(T.ceildiv(N, size)) as cid:
            x = T.alloc_shared((size,), "float32")
            at = T.alloc_shared((size,), "int32")
            T.copy(X[cid * size], x)
            T.copy(I[cid * size], at)
            for i in T.Parallel(size):
                T.atomic_max(Y[at[i]], x[i])

    return largest


def test_elements_at_an_index():
    x, at, y = rng.uniform(-1, 1, 48).astype(np.float32), rng.integers(0, 7, 48).astype(np.int32), np.zeros(7, np.float32)
    picked(48, 16, 7)(x, at, y)
    want = np.zeros(7, np.float32)
    np.maximum.at(want, at, x)
    np.testing.assert_array_equal(y, want)


@tile_eg.jit
def counted(N, size, K, dtype):
    @T.prim_func
    def histogram(I: T.Tensor((N,), "int32"), H: T.Tensor((K,), dtype)):  # noqa: E741
        with T.Kernel(T.ceildiv(N, size)) as cid:
            for i in T.serial(size):
                if cid * size + i < N:
                    T.atomic_add(H[I[cid * size + i]], 1)

    return histogram


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_number_is_added_to_an_element(dtype):
    at, h = rng.integers(0, 13, 40).astype(np.int32), np.zeros(13, dtype)
    counted(40, 16, 13, dtype)(at, h)
    np.testing.assert_array_equal(h, np.bincount(at, minlength=13))


KERNEL = """
@T.prim_func
def f(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(2) as b:
        x = T.alloc_shared((64,), "float32")
        T.copy(X, x)
        {}
"""


@pytest.mark.parametrize(("line", "message"), [
    ("T.atomic_max(Y[0], x); T.atomic_add(Y[0], x)", "`Y` is changed by T.atomic_max, and by T.atomic_add here"),
    ("for i in T.Parallel(64):\n            if x[i] > 0: T.atomic_max(Y[i], x[i])", "T.atomic_max under a condition"),
])  # fmt: skip
def test_what_would_depend_on_the_order_or_on_zeros_is_refused(line, message):
    with pytest.raises(TileError, match=message):
        tile_eg.compile(prim_func(KERNEL.format(line))).compile()
