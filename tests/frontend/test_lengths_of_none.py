"""Rows of which none exist, as a number that is read says: what is computed of them is reduced to what nothing gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tile_eg.search.compiler import meaning

SCALED = """
kernel scaled(X: f32[16, 8], n: i32[1]) -> S: f32[1, 8] {
  grid b = 1
  fragment x: f32[16, 8], m: f32[16], s: f32[8]
  x = X[0 : n[0], 0]
  m = rowmax(x)
  x = x * m[:, None]
  s = colsum(x)
  S[0, 0] = s
}
"""


@pytest.mark.slow
def test_no_rows_beside_a_vector_sum_to_zero() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (16, 8)).astype(np.float32)
    for n in (0, 3):
        found = meaning(kernel(SCALED), {"X": x, "n": np.array([n], np.int32)})["S"]
        np.testing.assert_allclose(found[0], (x[:n] * x[:n].max(1)[:, None]).sum(0), rtol=1e-5, atol=1e-6)
