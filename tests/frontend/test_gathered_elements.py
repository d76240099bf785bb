"""Single elements of a tensor where an input says: `v[i] = X[i, t[i]]`."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ops.types import BF16, F16, F32
from tile_eg.search.compiler import lower

TEXT = """kernel picked[M=21, N=50](X: DTYPE[M, N], T: i32[M]) -> Y: DTYPE[M] {
  grid bx = 3
  shared v: DTYPE[8], t: i32[8]
  t = T[bx*8]
  parallel i in 8 { v[i] = ELEMENT }
  Y[bx*8] = v
}
"""
RNG = np.random.default_rng(0)
X, T = RNG.uniform(-1, 1, (21, 50)), RNG.integers(0, 21, 21).astype(np.int32)
ROW = np.arange(21)
MEANINGS = [
    ("X[bx*8 + i, T[bx*8 + i]]", X[ROW, T]),
    ("X[bx*8 + i, t[i]]", X[ROW, T]),
    ("X[t[i], bx*8 + i]", X[T, ROW]),
    ("X[t[i], t[i]]", X[T, T]),
    ("X[t[i], 3]", X[T, 3]),
    ("X[bx*8 + i, t[i]] * 2", X[ROW, T] * 2),
]


def picked(element: str, dtype: object, x: np.ndarray) -> np.ndarray:
    kernel = load_text(TEXT.replace("ELEMENT", element).replace("DTYPE", str(dtype))).instantiate()
    return lower(kernel).run({"X": x, "T": T}).outputs["Y"]


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize(("element", "meant"), MEANINGS, ids=[m[0] for m in MEANINGS])
def test_elements_are_picked_by_an_index(element: str, meant: np.ndarray) -> None:
    np.testing.assert_array_equal(picked(element, F32, X.astype(np.float32)), meant.astype(np.float32))


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_short_floats_are_picked_as_they_are(dtype: object) -> None:
    x = X.astype(numpy_dtype(dtype))
    x[0, T[0]] = np.inf
    np.testing.assert_array_equal(picked("X[bx*8 + i, t[i]]", dtype, x), x[ROW, T])
