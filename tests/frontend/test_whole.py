"""Whole numbers in the source: products of bytes and what may be done with their sums."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.test_bad_input import error_of
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.reference_values import run_values
from tile_eg.search.compiler import meaning

BYTES = """
kernel bytes[M=20, N=40, K=100, BK=32](A: i8[M, K], B: i8[N, K]) -> C: i32[M, N] {
  grid bx = 1
  shared a: i8[M, BK], b: i8[N, BK]
  fragment c: i32[M, N] = 0, x: f32[M, N] = 0, v: f32[M]
  for k in serial(ceildiv(K, BK)) {
    a = A[0, k*BK]
    b = B[0, k*BK]
    c += a @ b.T
  }
  C[0, 0] = c
}
"""


def operands(text):
    k = load_text(text).instantiate()
    random = np.random.default_rng(1)
    return k, {t.name: random.integers(-128, 128, t.shape).astype(np.int8) for t in k.tensors if not t.output}


def test_bytes_are_multiplied_exactly():
    k, given = operands(BYTES)
    assert np.array_equal(meaning(k, given)["C"], given["A"].astype(int) @ given["B"].astype(int).T)


@pytest.mark.parametrize("value", ["c", "f32(c) * 0.01", "relu(f16(c))"])
def test_values_have_the_meaning_of_the_source(value):
    k, given = operands(BYTES if value == "c" else BYTES.replace("C: i32", "C: f16").replace("= c\n", f"= {value}\n"))
    assert np.array_equal(run_values(to_values(k), given)["C"], meaning(k, given)["C"])


@pytest.mark.parametrize(
    ("old", "new", "message", "help"),
    [
        ("C[0, 0] = c", "C[0, 0] = exp(c)", "i32[20, 40]: `exp` takes f16, f32", "cast it first: f32(x)"),
        ("C[0, 0] = c", "C[0, 0] = c * 0.5", "0.5 is no i32, which holds whole numbers from -2147483648", ""),
        ("C[0, 0] = c", "C[0, 0] = c / c", "i32[20, 40]: `/` takes f16, f32", "cast it first: f32(x)"),
        ("C[0, 0] = c", "C[0, 0] = c << 32", "i32 is shifted by 0 to 31 bits, not by 32", ""),
        ("C[0, 0] = c", "x = x & x", "f32[20, 40]: `&` takes i16, u16, i32, u32", ""),
        ("C[0, 0] = c", "C[0, 0] = c + u32(c)", "i32 and u32 do not mix", "cast one of them: u32(x)"),
        ("C[0, 0] = c", "C[0, 0] = x", "`C` holds i32, the value is f32[20, 40]", "i32(x) rounds, and saturates"),
        ("c += a @ b.T", "c += a.T @ a", "a transposed left operand of i8 is not supported", "store it as rows x depth"),
        ("c += a @ b.T", "c += c @ b", "`@` multiplies tiles of one element type", ""),
    ],
)
def test_what_does_not_go_with_whole_numbers_is_refused(old, new, message, help):
    error = error_of(BYTES.replace(old, new))
    assert message in error.message
    assert help in error.help


def test_a_byte_is_rounded_to_even_and_saturated():
    source = "kernel k(X: f32[8]) -> C: i8[8] { grid b = 1 shared x: f32[8] x = X[0] C[0] = i8(x) }"
    x = np.array([0.5, 1.5, -2.5, 127.6, -200, np.inf, np.nan, 3], np.float32)
    assert meaning(load_text(source).instantiate(), {"X": x})["C"].tolist() == [0, 2, -2, 127, -128, 127, 0, 3]


def test_a_right_operand_that_is_turned_has_whole_squares():
    turned = BYTES.replace("B: i8[N, K]", "B: i8[K, N]").replace("b: i8[N, BK]", "b: i8[BK, N]")
    error = error_of(turned.replace("B[0, k*BK]", "B[k*BK, 0]").replace("b.T", "b"))
    assert "turned by squares of 32 x 32" in error.message
    assert "a @ b.T" in error.help
