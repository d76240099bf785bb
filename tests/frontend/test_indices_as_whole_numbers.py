"""Indices and constants of 32 bits in arithmetic on whole numbers: what f32 does not hold is not lost."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.ir import arithmetic
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference import run_kernel
from tile_eg.search.compiler import lower

X = np.random.default_rng(0).integers(0, 2**32, (8, 64), dtype=np.uint32)


def kernel(body: str, dtype: str = "u32") -> Kernel:
    return load_text(f"""kernel k[M=8, N=64](X: u32[M, N]) -> Y: {dtype}[M, N] {{
      grid bx = 2
      shared x: u32[4, N], y: {dtype}[4, N]
      x = X[bx*4, 0]
      {body}
      Y[bx*4, 0] = y }}""").instantiate()


def hashed(h: np.ndarray) -> np.ndarray:
    h = (h ^ (h >> np.uint32(16))) * np.uint32(2146121005)
    return (h ^ (h >> np.uint32(15))) * np.uint32(2221713035)


NUMBER = np.arange(8 * 64, dtype=np.int64).reshape(8, 64)
MEANINGS = [
    ("y = x * 2146121005", X * np.uint32(2146121005)),
    ("y = x * 2221713035 + 16777217", X * np.uint32(2221713035) + np.uint32(16777217)),
    ("x = (x ^ (x >> 16)) * 2146121005  y = (x ^ (x >> 15)) * 2221713035", hashed(X)),
    ("parallel (i, j) in (4, N) { y[i, j] = u32((bx*4 + i)*N + j) + x[i, j] }", X + NUMBER.astype(np.uint32)),
    ("parallel (i, j) in (4, N) { y[i, j] = u32((bx*4 + i)*N + j + 4000000000) }", (NUMBER + 4000000000).astype(np.uint32)),
    ("parallel (i, j) in (4, N) { y[i, j] = u32(i * 500000001 + j) }",
     (np.tile(np.arange(4), 2)[:, None] * 500000001 + np.arange(64)).astype(np.uint32)),
    ("y = u32(bx * 3000000001)", np.repeat(np.uint32([0, 3000000001]), 4)[:, None] + np.zeros_like(X)),
]  # fmt: skip


@pytest.mark.parametrize(("body", "meant"), MEANINGS, ids=[m[0] for m in MEANINGS])
def test_the_meaning_keeps_all_bits(body: str, meant: np.ndarray) -> None:
    np.testing.assert_array_equal(run_kernel(kernel(body), {"X": X})["Y"], meant)


@pytest.mark.few(3)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("body", "meant"), MEANINGS, ids=[m[0] for m in MEANINGS])
def test_the_emitted_kernel_keeps_all_bits(body: str, meant: np.ndarray) -> None:
    np.testing.assert_array_equal(lower(kernel(body)).run({"X": X}).outputs["Y"], meant)


@pytest.mark.slow
def test_the_low_bits_of_an_index_are_a_number_with_a_sign_too() -> None:
    body = "parallel (i, j) in (4, N) { y[i, j] = i32((bx*4 + i)*N + j - 4000000000) }"
    want = (NUMBER - 4000000000).astype(np.int32)
    np.testing.assert_array_equal(lower(kernel(body, "i32")).run({"X": X}).outputs["Y"], want)


@pytest.mark.parametrize("value", [-1e30, 3.4028234663852886e38, -np.inf])
def test_a_number_beyond_64_bits_is_one_of_f32(value: float):
    assert arithmetic.number(value) == np.float32(value)
