"""Whole numbers divided element by element, rounded down as Python and NumPy do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

KERNEL = """
@T.prim_func
def f(
    X: T.Tensor((100,), "{dtype}"), Y: T.Tensor((100,), "{dtype}"), Q: T.Tensor((100,), "{dtype}"), R: T.Tensor((100,), "{dtype}")
):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x = T.alloc_ub((128,), "{dtype}")
        y = T.alloc_ub((128,), "{dtype}")
        q = T.alloc_ub((128,), "{dtype}")
        r = T.alloc_ub((128,), "{dtype}")
        T.copy(X[0], x)
        T.copy(Y[0], y)
        {kept}
        for i in T.Parallel(128):
            q[i] = x[i] // {by}
            r[i] = x[i] % {by}
        {kept}
        T.copy(q, Q[0])
        T.copy(r, R[0])
"""


def numbers(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the whole range, exact multiples and extremes among them; no divisor is 0."""
    random, of = np.random.default_rng(0), np.iinfo(dtype)
    x, y = (random.integers(of.min, of.max, 100, dtype=dtype, endpoint=True) for _ in range(2))
    y[::3] = random.integers(1, 12, 34)
    y[y == 0] = 1
    x[:6], y[:6] = [of.max, of.min, 0, 1, 5, of.max], [1, 2, 5, of.max, 5, of.max]
    x[50:60] = np.arange(-5 if of.min else 0, 5 if of.min else 10) * 7
    return x, y


def divided(dtype: str, by: int | None, kept: bool) -> None:
    x, y = numbers(dtype)
    text = KERNEL.format(dtype=dtype, by=by or "y[i]", kept="T.barrier_all()" if kept else "pass")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = tile_eg.compile(prim_func(text), out_idx=[2, 3], pass_configs={"tl.ascend_auto_sync": True})
        q, r = kernel(x, y)
    divisor = np.array(by, dtype) if by else y
    np.testing.assert_array_equal(q, x // divisor)
    np.testing.assert_array_equal(r, x % divisor)


OF_TYPES = [("int32", None), ("int32", -3), ("int16", 7), ("int8", -3), ("uint16", None), ("uint8", 8)]


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "by"), OF_TYPES)
def test_whole_numbers_are_divided(dtype: str, by: int | None) -> None:
    divided(dtype, by, kept=False)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "by"), [("int32", None), ("int16", 7), ("int32", 8)])
def test_so_they_are_in_a_kept_kernel(dtype: str, by: int | None) -> None:
    divided(dtype, by, kept=True)


@pytest.mark.slow
def test_tiles_of_a_text_are_divided() -> None:
    text = "kernel k(X: i32[8, 64]) -> Y: i32[8, 64] { shared x: i32[8, 64] x = X[0, 0] x = x // 12 + x % 5 Y[0, 0] = x }"
    x = np.random.default_rng(0).integers(-(2**31), 2**31, (8, 64)).astype(np.int32)
    np.testing.assert_array_equal(lower(load_text(text).instantiate()).run({"X": x})["Y"], x // 12 + x % 5)


@pytest.mark.slow
def test_the_least_number_divides_and_is_divided() -> None:
    least = -(2**31)
    text = """kernel k(X: i32[64], Y: i32[64]) -> (Q: i32[64], R: i32[64]) {
      shared x: i32[64], y: i32[64] x = X[0] y = Y[0] x = x // y Q[0] = x x = X[0] x = x % y R[0] = x
    }"""
    some = np.array([least, least + 1, -1, 0, 1, 5, 2**31 - 2, 2**31 - 1], np.int32)
    x, y = np.repeat(some, 8), np.tile(np.where(some == 0, 3, some), 8)
    got = lower(load_text(text).instantiate()).run({"X": x, "Y": y})
    with np.errstate(over="ignore"):  # the least number by -1
        np.testing.assert_array_equal(got["Q"], x // y)
        np.testing.assert_array_equal(got["R"], x % y)


@pytest.mark.parametrize(
    ("by", "message"), [("0", "`//` by 0"), ("200", "200 is no i8, which holds"), ("2.5", "2.5 is no i8, which holds")]
)
def test_what_is_no_divisor_of_a_type_is_refused(by: str, message: str) -> None:
    text = f"kernel k(X: i8[8, 64]) -> Y: i8[8, 64] {{ shared x: i8[8, 64] x = X[0, 0] x = x // {by} Y[0, 0] = x }}"
    with pytest.raises(TileError, match=message):
        load_text(text).instantiate()


@pytest.mark.parametrize("by", [3, 4])
def test_bits_of_whole_numbers_have_no_remainder_as_c_has_it(by: int) -> None:
    text = "@T.prim_func\ndef f(X: T.Tensor((64,), 'int32'), Y: T.Tensor((64,), 'int32')):\n  with T.Kernel(1) as c:\n" \
           f"    x = T.alloc_shared((64,), 'int32')\n    T.copy(X, x)\n    x[:] = T.fmod(x, {by})\n    T.copy(x, Y)\n"
    with pytest.raises(TileError, match="T.fmod is of elements that are floats"):
        tile_eg.compile(prim_func(text)).kernel  # noqa: B018
