"""Kernels with bits and bytes whose tiles do not fit: in row panels, where eight elements that share a byte stay together."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

BITS = """
kernel chosen[M=512, N={n}](X: f32[M, N], Y: f32[M, N], B: u8[M, N // 8]) -> (C: f32[M, N], D: f32[M]) {{
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N], b: u8[M, N // 8], d: f32[M]
  x = X[0, 0]
  y = Y[0, 0]
  b = B[0, 0]
  x = select(bits(b), x, y)
  d = rowmax(x)
  C[0, 0] = x * d[:, None]
  D[0] = d
}}
"""


@pytest.mark.slow
@pytest.mark.parametrize("n", [128, 512])
def test_a_selection_by_bits_that_does_not_fit_is_made_in_panels(n: int) -> None:
    low = lower(load_text(BITS.format(n=n)).instantiate(), "910B2")
    random = np.random.default_rng(0)
    x, y = (random.uniform(-1, 1, (512, n)).astype(np.float32) for _ in range(2))
    b = random.integers(0, 256, (512, n // 8)).astype(np.uint8)
    chosen = np.where(np.unpackbits(b, axis=-1, bitorder="little"), x, y)
    found = low.run({"X": x, "Y": y, "B": b}).outputs
    assert np.array_equal(found["D"], chosen.max(1))
    assert np.array_equal(found["C"], chosen * chosen.max(1)[:, None])
