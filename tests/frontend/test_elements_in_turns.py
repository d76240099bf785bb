"""Loops that read and write every second element: pairs are taken apart and put together again."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.values import made_of
from tile_eg.ops.types import F16, F32, DType
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


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dtype", [F16, F32], ids=str)
@pytest.mark.parametrize("text", [TILE, ROW], ids=["tile", "row"])
def test_pairs_are_taken_apart_and_put_together(text: str, dtype: DType) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (16, 64)).astype(numpy_dtype(dtype))
    got = lower(load_text(text.replace("DTYPE", str(dtype))).instantiate()).run({"X": x}).outputs["Y"]
    a, b = x[:, ::2], x[:, 1::2]
    np.testing.assert_array_equal(got, np.stack([a - b, a + b], -1).reshape(16, 64))


def test_pairs_take_one_gather() -> None:
    values = to_values(load_text(TILE.replace("DTYPE", "f16")).instantiate())
    assert sorted(t.args[0] for t in made_of(values.outputs) if t.op == "whole") == ["every", "every", "gather"]
