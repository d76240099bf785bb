"""Choices by position that leave out what is not there: neighbours at the edges of a buffer, searched and in order."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

X = np.random.default_rng(0).uniform(-1, 1, (16, 64)).astype(np.float32)
TEXT = """@T.prim_func
def f(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x, y = T.alloc_ub((16, 64), "float32"), T.alloc_ub((16, 64), "float32")
        WAY
        T.copy(X, x)
        T.copy(X, y)
        for i, j in T.Parallel(16, 64):
            BODY
        T.copy(y, Y)
"""
WAYS = {"searched": "pass", "in order": 'T.printf("")'}
CROSS = "(x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])"


def inside() -> np.ndarray:
    found = X.copy()
    found[1:-1, 1:-1] = X[:-2, 1:-1] + X[2:, 1:-1] + X[1:-1, :-2] + X[1:-1, 2:]
    return found


def shifted(rows: int, cols: int) -> np.ndarray:
    found = np.zeros_like(X)
    found[rows:, cols:] = X[: 16 - rows, : 64 - cols]
    return found


BODIES = {
    f"if i > 0 and i < 15 and j > 0 and j < 63: y[i, j] = {CROSS}": inside(),
    f"y[i, j] = T.if_then_else((i > 0) & (i < 15) & (j > 0) & (j < 63), {CROSS}, x[i, j])": inside(),
    "y[i, j] = T.if_then_else(i >= 1, x[i - 1, j], 0.0)": shifted(1, 0),
    "y[i, j] = T.if_then_else(j < 3, 0.0, x[i, j - 3])": shifted(0, 3),
    "y[i, j] = T.if_then_else((i < 2) | (j < 5), 0.0, x[i - 2, j - 5])": shifted(2, 5),
}


def ran(body: str, way: str) -> np.ndarray:
    kernel = prim_func(TEXT.replace("WAY", WAYS[way]).replace("BODY", body))
    auto = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
    return tile_eg.jit(out_idx=[-1], pass_configs=auto, effort="none")(kernel)(X)


@pytest.mark.slow
@pytest.mark.few(5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("body", BODIES)
def test_neighbours_that_a_condition_leaves_out_are_not_read(body: str, way: str) -> None:
    np.testing.assert_allclose(ran(body, way), BODIES[body], rtol=1e-5, atol=1e-6)


def test_parts_do_not_use_what_other_parts_write() -> None:
    with pytest.raises(TileError):
        ran("y[i, j] = T.if_then_else(j < 32, y[i, j + 32], y[i, j - 32])", "searched")


def test_a_condition_that_leaves_too_much_in_is_told() -> None:
    with pytest.raises(TileError, match="index j - 3 takes the value -"):
        ran("y[i, j] = T.if_then_else(j >= 2, x[i, j - 3], 0.0)", "searched")


@pytest.mark.slow
def test_text_says_the_same() -> None:
    text = """kernel k(X: f32[16, 64]) -> Y: f32[16, 64] {
      shared x: f32[16, 64], y: f32[16, 64]
      x = X[0, 0]
      parallel (i, j) in (16, 64) { y[i, j] = select(i >= 1, x[i - 1, j], 0) }
      Y[0, 0] = y }"""
    np.testing.assert_array_equal(lower(load_text(text).instantiate()).run({"X": X})["Y"], shifted(1, 0))


@pytest.mark.slow
@pytest.mark.parametrize("body", ["Y[r, j] = x[i, j]", "Y[r, j] = x[0, j]"])
def test_a_variable_of_one_iteration_need_not_say_what_is_written(body: str) -> None:
    kernel = prim_func(f"""@T.prim_func
def f(X: T.Tensor((10, 50), "float32"), Y: T.Tensor((10, 50), "float32")):
    with T.Kernel(10) as r:
        x = T.alloc_shared((1, 64), "float32")
        T.copy(X[r, 0], x)
        for i, j in T.Parallel(1, 64):
            if j < 50:
                {body}
""")
    x = np.ascontiguousarray(X[:10, :50])
    np.testing.assert_array_equal(tile_eg.jit(out_idx=[-1], effort="none")(kernel)(x), x)


@pytest.mark.slow
def test_maxima_over_ever_longer_ranges() -> None:
    """Parts of one buffer that begin at one element have a place each, as they differ in size."""
    kernel = prim_func("""@T.prim_func
def f(X: T.Tensor((8, 32), "float32"), Y: T.Tensor((8, 32), "float32")):
    with T.Kernel(1) as b:
        x, y = T.alloc_shared((8, 32), "float32"), T.alloc_shared((8, 32), "float32")
        T.copy(X, x)
        for s in [4, 8]:
            for i, j in T.Parallel(8, 32):
                y[i, j] = T.if_then_else(j >= s, T.max(x[i, j], x[i, j - s]), x[i, j])
            T.copy(y, x)
        T.copy(x, Y)
""")
    x = np.ascontiguousarray(X[:8, :32])
    wanted = x
    for s in (4, 8):
        wanted = np.maximum(wanted, np.pad(wanted[:, :-s], ((0, 0), (s, 0)), constant_values=-np.inf))
    np.testing.assert_array_equal(tile_eg.jit(out_idx=[-1], effort="none")(kernel)(x), wanted)


@pytest.mark.slow
def test_trips_that_a_condition_goes_by_are_read_one_by_one() -> None:
    kernel = prim_func("""@T.prim_func
def f(X: T.Tensor((16, 64), "float32"), K: T.Tensor((3, 3), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(1) as b:
        x, y = T.alloc_shared((16, 64), "float32"), T.alloc_shared((16, 64), "float32")
        T.copy(X, x)
        T.clear(y)
        for a in range(3):
            for c in range(3):
                for i, j in T.Parallel(16, 64):
                    there = T.And(T.And(i + a >= 1, i + a < 17), T.And(j + c >= 1, j + c < 65))
                    y[i, j] += T.if_then_else(there, x[i + a - 1, j + c - 1], 0.0) * K[a, c]
        T.copy(y, Y)
""")
    k, padded = np.arange(9, dtype=np.float32).reshape(3, 3), np.pad(X, 1)
    wanted = sum(padded[a : a + 16, c : c + 64] * k[a, c] for a, c in np.ndindex(3, 3))
    np.testing.assert_allclose(tile_eg.jit(out_idx=[-1], effort="none")(kernel)(X, k), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_they_are_so_in_order_too() -> None:
    kernel = prim_func("""@T.prim_func
def f(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(1) as b:
        x, y = T.alloc_shared((16, 64), "float32"), T.alloc_shared((16, 64), "float32")
        T.printf("")
        T.copy(X, x)
        T.clear(y)
        for a in T.serial(2):
            for c in T.serial(0, 4, 2):
                for i, j in T.Parallel(16, 64):
                    y[i, j] += T.if_then_else((i >= a) & (j >= c), x[i - a, j - c], 0.0)
        T.copy(y, Y)
""")
    padded = np.pad(X, ((1, 0), (2, 0)))
    wanted = sum(padded[1 - a : 17 - a, 2 - c : 66 - c] for a in (0, 1) for c in (0, 2))
    np.testing.assert_allclose(tile_eg.jit(out_idx=[-1])(kernel)(X), wanted, rtol=1e-5, atol=1e-5)
