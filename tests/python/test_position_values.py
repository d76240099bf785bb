"""Quotients and remainders of positions, as values, in comparisons, and as the places of elements that are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T  # noqa: N812
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

ROWS, COLS = 6, 40
X = np.arange(1, ROWS * COLS + 1, dtype=np.float32).reshape(ROWS, COLS)
I, J = np.indices(X.shape)  # noqa: E741


def made(value: Any, kept: bool) -> Any:
    """A kernel of `value(x[i, j], i, j)`, for the search or kept as it is written."""

    @T.prim_func
    def searched(X: T.Tensor((ROWS, COLS), "float32"), Y: T.Tensor((ROWS, COLS), "float32")):  # noqa: N803
        with T.Kernel(1) as _:
            x, y = T.alloc_ub((ROWS, COLS), "float32"), T.alloc_ub((ROWS, COLS), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(ROWS, COLS):
                y[i, j] = value(x[i, j], i, j)
            T.copy(y, Y)

    @T.prim_func
    def in_scope(X: T.Tensor((ROWS, COLS), "float32"), Y: T.Tensor((ROWS, COLS), "float32")):  # noqa: N803
        with T.Kernel(1) as _:  # noqa: SIM117
            with T.Scope("V"):
                x, y = T.alloc_ub((ROWS, COLS), "float32"), T.alloc_ub((ROWS, COLS), "float32")
                T.copy(X, x)
                T.barrier_all()
                for i, j in T.Parallel(ROWS, COLS):
                    y[i, j] = value(x[i, j], i, j)
                T.barrier_all()
                T.copy(y, Y)

    return tile_eg.compile(in_scope if kept else searched, out_idx=[1])


VALUES = {
    "a remainder": (lambda x, i, j: x + (j + 5 * i) % 3, X + (J + 5 * I) % 3),
    "a quotient of a remainder": (lambda x, i, j: x * (j % 20 // 7), X * (J % 20 // 7)),
    "both as words": (lambda x, i, j: x * T.floormod(T.floordiv(j - 20, 7), 3), X * ((J - 20) // 7 % 3)),
    "every third element": (lambda x, i, j: T.if_then_else(j % 3 == 1, x, 0.0), np.where(J % 3 == 1, X, 0)),
    "a checked pattern": (lambda x, i, j: T.if_then_else((i + j) % 4 < 2, -x, x), np.where((I + J) % 4 < 2, -X, X)),
    "two conditions": (
        lambda x, i, j: T.if_then_else(T.And(j // 8 == i, j > 9), x, 1.0), np.where((J // 8 == I) & (J > 9), X, 1)
    ),
    "a byte": (lambda x, i, j: x + T.cast(300 * i + j - 200, "uint8"), X + ((300 * I + J - 200) % 256)),
    "a byte with a sign": (lambda x, i, j: x + (300 * i + j).astype("int8"), X + (300 * I + J).astype(np.int8)),
    "what a short number holds": (lambda x, i, j: x + T.cast(j - 200, "int16"), X + (J - 200)),
}  # fmt: skip


@pytest.mark.few(8)
@pytest.mark.slow(but=2)
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_a_position_is_divided(name: str, kept: bool) -> None:
    value, want = VALUES[name]
    np.testing.assert_array_equal(made(value, kept)(X), want.astype(np.float32))


@pytest.mark.slow
def test_a_place_that_is_cast_to_a_byte_wraps() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((320,), "float32"), Y: T.Tensor((320,), "float32")):  # noqa: N803
        with T.Kernel(1) as _:
            x, y = T.alloc_shared((320,), "float32"), T.alloc_shared((320,), "float32")
            T.copy(X, x)
            for j in T.Parallel(320):
                y[j] = x[T.cast(j, "uint8")]
            T.copy(y, Y)

    x = np.arange(320, dtype=np.float32)
    np.testing.assert_array_equal(tile_eg.compile(kernel, out_idx=[1])(x), x % 256)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "bits"), [("int32", 4), ("uint8", 2)])
def test_numbers_packed_in_a_word_are_taken_apart_up_to_a_tensors_end(dtype: str, bits: int) -> None:
    each = np.dtype(dtype).itemsize * 8 // bits

    @T.prim_func
    def kernel(W: T.Tensor((20, 64 // each), dtype), Y: T.Tensor((20, 64), "float16")):  # noqa: N803
        with T.Kernel(2) as block:
            w, y = T.alloc_shared((16, 64 // each), dtype), T.alloc_shared((16, 64), "float16")
            T.copy(W[block * 16, 0], w)
            for i, j in T.Parallel(16, 64):
                y[i, j] = T.cast((w[i, j // each] >> (j % each * bits)) & (2**bits - 1), "float16")
            T.copy(y, Y[block * 16, 0])

    info = np.iinfo(dtype)
    w = np.random.default_rng(0).integers(info.min, info.max, (20, 64 // each), dtype)
    want = (np.repeat(w, each, axis=1).astype(np.int64) >> (np.arange(64) % each * bits)) & (2**bits - 1)
    np.testing.assert_array_equal(tile_eg.compile(kernel, out_idx=[1])(w), want.astype(np.float16))


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "least", "most"), [("uint8", 0, 255), ("int16", -(2**15), 2**15 - 1)])
def test_an_element_that_the_scalar_unit_casts_is_the_nearest_that_there_is(dtype: str, least: int, most: int) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((8,), "int32"), Y: T.Tensor((8,), "float32")):  # noqa: N803
        with T.Kernel(1) as _:  # noqa: SIM117
            with T.Scope("V"):
                x, y = T.alloc_ub((8,), "int32"), T.alloc_ub((8,), "float32")
                T.copy(X, x)
                T.barrier_all()
                for i in T.serial(8):
                    y[i] = T.cast(T.cast(x[i], dtype), "float32")
                T.barrier_all()
                T.copy(y, Y)

    x = np.array([-70000, -300, -1, 0, 7, 255, 256, 70000], np.int32)
    np.testing.assert_array_equal(tile_eg.compile(kernel, out_idx=[1])(x), np.clip(x, least, most).astype(np.float32))


def test_a_position_beyond_what_f32_holds_is_refused() -> None:
    text = """kernel k(X: i32[16, 32]) -> Y: i32[16, 32] {
      shared x: i32[16, 32]
      parallel (i, j) in (16, 32) { x[i, j] = (i // 3) * 5000001 + j }
      Y[0, 0] = x }"""
    with pytest.raises(tile_eg.TileError, match="not linear in the loop|are too large here"):
        lower(load_text(text).instantiate())


@pytest.mark.parametrize(
    "value", ["((b*8 + i) // 3) * 5000001 + j", "((b*8 + i) % 5) * 5000001 + j", "b * 8000000 + (b*8 + i) // 3"]
)
def test_so_is_one_whose_block_takes_it_there(value: str) -> None:
    text = f"""kernel k(X: i32[32, 32]) -> Y: i32[32, 32] {{
      grid b = 4
      shared x: i32[8, 32]
      parallel (i, j) in (8, 32) {{ x[i, j] = {value} }}
      Y[b*8, 0] = x }}"""
    with pytest.raises(tile_eg.TileError, match="not linear in the loop|are too large here"):
        lower(load_text(text).instantiate())


@pytest.mark.slow
def test_a_position_beyond_32_bits_keeps_its_low_bits_where_it_is_stored_as_a_whole_number() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def hashed(X: T.Tensor((300,), "int32"), seed: T.int32, Y: T.Tensor((300,), "int32")):
        with T.Kernel(3) as b:
            h = T.alloc_shared((128,), "int32")
            x = T.alloc_shared((128,), "int32")
            T.copy(X[b * 128], x)
            for i in T.Parallel(128):
                h[i] = ((b * 128 + i) * 747796405 + seed) ^ x[i]
            T.copy(h, Y[b * 128])

    at, x = np.arange(300, dtype=np.int64), np.arange(300, 0, -1, dtype=np.int32)
    wanted = (at * 747796405 + 12345).astype(np.int32) ^ x
    np.testing.assert_array_equal(hashed(x, 12345), wanted)
