"""Positions that are stored as whole numbers of 8 or 16 bits keep their low bits, as NumPy's do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError

I, J = np.ogrid[:4, :16]  # noqa: E741
TEXT = """@T.prim_func
def f(X: T.Tensor((4, 16), "DTYPE"), Y: T.Tensor((4, 16), "OUT")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x, y = T.alloc_ub((4, 16), "DTYPE"), T.alloc_ub((4, 16), "OUT")
        WAY
        T.copy(X, x)
        for i, j in T.Parallel(4, 16):
            y[i, j] = VALUE
        T.copy(y, Y)
"""
WAYS = {"searched": "pass", "in order": 'T.printf("")'}
STORED = {
    "j * 5000 + i * 7": lambda x: J * 5000 + I * 7,
    "-j * 300": lambda x: -J * 300 + 0 * I,
    "(j * 5000) % 70001": lambda x: J * 5000 % 70001 + 0 * I,
    "T.if_then_else(j < 3, i * 70000, x[i, j])": lambda x: np.where(J < 3, I * 70000, x),
    "(x[i, j] // 4 + j) // 16": lambda x: (x // 4 + J) // 16,
    "x[i, j] + j * 5000": lambda x: x + J * 5000,
}
UNSIGNED = {
    "T.if_then_else(x[i, j] > N, x[i, j], 1)": lambda x, n: np.where(x > n, x, 1),
    "T.if_then_else(x[i, j] < N, j, i)": lambda x, n: np.where(x < n, J, I),
    "T.if_then_else(x[i, j] == j * 3, 1, 0)": lambda x, n: (x == J * 3) * 1,
    "x[i, j] * 3 + j": lambda x, n: x * 3 + J,
}


def ran(value: str, way: str, x: np.ndarray, out: str = "") -> np.ndarray:
    text = TEXT.replace("DTYPE", x.dtype.name).replace("OUT", out or x.dtype.name)
    kernel = prim_func(text.replace("WAY", WAYS[way]).replace("VALUE", value))
    auto = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
    return tile_eg.jit(out_idx=[-1], pass_configs=auto, effort="none")(kernel)(x)


def elements(dtype: str) -> np.ndarray:
    return (np.arange(64).reshape(4, 16) * 3).astype(dtype)


@pytest.mark.few(17)
@pytest.mark.slow(but=2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["uint16", "int16", "uint8", "int8"])
@pytest.mark.parametrize("value", STORED)
def test_a_position_that_does_not_fit_keeps_its_low_bits(value: str, dtype: str, way: str) -> None:
    x = elements(dtype)
    np.testing.assert_array_equal(ran(value, way, x), STORED[value](x.astype(np.int64)).astype(dtype))


@pytest.mark.parametrize("way", WAYS)
def test_a_maximum_of_bytes_and_larger_positions_is_refused_with_a_way_out(way: str) -> None:
    with pytest.raises(TileError, match=r"this index may be 1500, which u8 does not hold(.|\n)*low bits(.|\n)*32 bits"):
        ran("T.max(x[i, j], j * 100)", way, elements("uint8"))


@pytest.mark.few(7)
@pytest.mark.slow(but=2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("value", UNSIGNED)
def test_choices_and_sums_of_numbers_without_a_sign(value: str, dtype: str, way: str) -> None:
    x, half = elements(dtype), 2 ** (np.dtype(dtype).itemsize * 8 - 1)
    x[2] = half + np.arange(16)
    want = UNSIGNED[value](x.astype(np.int64), half + 5).astype(dtype)
    np.testing.assert_array_equal(ran(value.replace("N", str(half + 5)), way, x), want)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_whole_numbers_are_chosen_beside_a_number(dtype: str, way: str) -> None:
    x = elements(dtype)
    np.testing.assert_array_equal(ran("T.if_then_else(x[i, j] > 30, x[i, j], 1)", way, x), np.where(x > 30, x, 1))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["uint16", "int16"])
def test_a_wider_type_holds_all_numbers_of_a_shorter_one(dtype: str, way: str) -> None:
    x = elements(dtype)
    np.testing.assert_array_equal(ran("x[i, j] + 1", way, x, "int32"), x.astype(np.int32) + 1)


FAR = """kernel far[N: dyn](X: DTYPE[N]) -> Y: DTYPE[N] {
  grid b = ceildiv(N, 1024)
  shared x: DTYPE[1024]
  x = X[b*1024]
  parallel i in 1024 { x[i] = x[i] + (b*1024 + i) }
  Y[b*1024] = x
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["u16", pytest.param("i16", marks=pytest.mark.long)])
def test_positions_of_run_time_sizes_wrap_beyond_the_type(dtype: str, tmp_path: Path) -> None:
    (tmp_path / "far.tile").write_text(FAR.replace("DTYPE", dtype))
    x = np.zeros(67000, {"u16": np.uint16, "i16": np.int16}[dtype])
    kernel = tile_eg.load(tmp_path / "far.tile", effort="none")
    np.testing.assert_array_equal(kernel(x), np.arange(67000).astype(x.dtype))
