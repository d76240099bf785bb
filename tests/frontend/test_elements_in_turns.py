"""Loops that read and write every second element: pairs are taken apart and put together again."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.values import made_of
from tile_eg.ops.types import BF16, F16, F32, DType
from tile_eg.search.compiler import lower

TILE = """kernel pairs[M=16, N=64](X: DTYPE[M, N]) -> Y: DTYPE[M, N] {
  grid bx = 2
  shared x: DTYPE[8, N], y: DTYPE[8, N]
  x = X[bx*8, 0]
  parallel (i, j) in (8, N // 2) {
    y[i, 2*j] = x[i, 2*j] - x[i, 2*j + 1]
    y[i, 2*j + 1] = x[i, 2*j] + x[i, 2*j + 1]
  }
  Y[bx*8, 0] = y
}
"""
ROW = """kernel pairs[M=16, N=64](X: DTYPE[M, N]) -> Y: DTYPE[M, N] {
  grid bx = M
  shared x: DTYPE[N], y: DTYPE[N]
  x = X[bx, 0]
  parallel j in N // 2 {
    y[2*j] = x[2*j] - x[2*j + 1]
    y[2*j + 1] = x[2*j] + x[2*j + 1]
  }
  Y[bx, 0] = y
}
"""


@pytest.mark.few(2)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dtype", [F16, F32], ids=str)
@pytest.mark.parametrize("text", [TILE, ROW], ids=["tile", "row"])
def test_pairs_are_taken_apart_and_put_together(text: str, dtype: DType) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (16, 64)).astype(numpy_dtype(dtype))
    got = lower(load_text(text.replace("DTYPE", str(dtype))).instantiate()).run({"X": x}).outputs["Y"]
    a, b = x[:, ::2], x[:, 1::2]
    np.testing.assert_array_equal(got, np.stack([a - b, a + b], -1).reshape(16, 64))


def wholes(text: str) -> list[str]:
    """The operations on whole tiles of a kernel."""
    return sorted(t.args[0] for t in made_of(to_values(load_text(text).instantiate()).outputs) if t.op == "whole")


def test_elements_that_differ_are_put_together_by_one_gather() -> None:
    text = TILE.replace("DTYPE", "f16").replace("x[i, 2*j] + x[i, 2*j + 1]", "exp(x[i, 2*j])")
    assert wholes(text) == ["every", "every", "gather"]


def test_pairs_are_done_as_whole_rows() -> None:
    assert wholes(TILE.replace("DTYPE", "f16")) == ["swap_pairs"]
    assert wholes(TILE.replace("DTYPE", "f32")) == ["gather"]


TURN = """kernel turn[M=13, N=64](X: DTYPE[M, N], C: f32[M, N // 2], S: f32[N // 2]) -> Y: DTYPE[M, N] {
  grid bx = 2
  shared x: DTYPE[8, N], y: DTYPE[8, N], c: f32[8, N // 2], s: f32[N // 2]
  x = X[bx*8, 0]  c = C[bx*8, 0]  s = S[0]
  parallel (i, j) in (8, N // 2) {
    y[i, 2*j] = EVEN
    y[i, 2*j + 1] = ODD
  }
  Y[bx*8, 0] = y
}
"""
EVEN = "x[i, 2*j] * c[i, j] - x[i, 2*j + 1] * s[j]"
SPELLINGS = [
    (EVEN, "x[i, 2*j + 1] * c[i, j] + x[i, 2*j] * s[j]"), (EVEN, "s[j] * x[i, 2*j] + c[i, j] * x[i, 2*j + 1]"),
    ("c[i, j] * x[i, 2*j] - s[j] * x[i, 2*j + 1]", "x[i, 2*j] * s[j] + x[i, 2*j + 1] * c[i, j]"),
]  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [F16, BF16, F32], ids=str)
@pytest.mark.parametrize(("even", "odd"), SPELLINGS, ids=["by place", "by angle", "mixed"])
def test_pairs_are_turned_in_tiles_that_are_cut_off_too(even: str, odd: str, dtype: DType) -> None:
    rng = np.random.default_rng(0)
    x, c, s = (rng.integers(-4, 5, n).astype(np.float32) for n in ((13, 64), (13, 32), 32))
    text = TURN.replace("DTYPE", str(dtype)).replace("EVEN", even).replace("ODD", odd)
    assert "every" not in wholes(text)
    got = lower(load_text(text).instantiate()).run({"X": x.astype(numpy_dtype(dtype)), "C": c, "S": s}).outputs["Y"]
    a, b = x[:, ::2], x[:, 1::2]
    np.testing.assert_array_equal(got.astype(np.float32), np.stack([a * c - b * s, b * c + a * s], -1).reshape(13, 64))


def test_both_elements_of_a_pair_may_have_one_factor() -> None:
    text = TURN.replace("DTYPE", "f16").replace("EVEN", "exp(x[i, 2*j]) * 2").replace("ODD", "exp(x[i, 2*j + 1]) * 2")
    assert wholes(text) == []


@pytest.mark.slow
def test_pairs_of_one_row_of_a_tile_are_turned() -> None:
    text = """kernel row(X: f32[8, 64], C: f32[8, 32]) -> Y: f32[64] {
      shared x: f32[8, 64], c: f32[8, 32], y: f32[64]
      x = X[0, 0]  c = C[0, 0]
      parallel j in 32 {
        y[2*j] = x[3, 2*j] - x[5, 2*j + 1] * c[1, j]
        y[2*j + 1] = x[3, 2*j + 1] + x[5, 2*j] * c[1, j]
      }
      Y[0] = y
    }"""
    x, c = (np.random.default_rng(0).integers(-4, 5, (8, n)).astype(np.float32) for n in (64, 32))
    got = lower(load_text(text).instantiate()).run({"X": x, "C": c}).outputs["Y"]
    even, odd = x[3, ::2] - x[5, 1::2] * c[1], x[3, 1::2] + x[5, ::2] * c[1]
    np.testing.assert_array_equal(got, np.stack([even, odd], -1).reshape(64))
