"""Quotients that are rounded to whole numbers or compared stay divisions; others may be products with a reciprocal."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

TEXT = """
kernel quotients(X: f32[32, 64]) -> C: f32[32, 64] {{
  grid bx = 1
  shared x: f32[32, 64], y: f32[32, 64]
  fragment m: f32[32]
  x = X[0, 0]
  m = rowmax(x)
  {}
  C[0, 0] = y
}}
"""
WHOLE = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
SEEN = {
    "floor": ("y = floor(x / 7)", np.floor(WHOLE / np.float32(7))),
    "in an element loop": ("parallel (i, j) in (32, 64) { y[i, j] = ceil(x[i, j] / 49) }", np.ceil(WHOLE / np.float32(49))),
    "cast": ("y = f32(i32(x / 7 - 0.5))", np.rint(WHOLE / np.float32(7) - np.float32(0.5))),
    "compared": ("y = select(x / 41 >= 17, 1, 0)", (WHOLE / np.float32(41) >= 17) * 1),
    "by rows": ("y = floor(x / (m * 0 + 7)[:, None])", np.floor(WHOLE / np.float32(7))),
    "in a loop": ("y = 0  for k in serial(3) { y = y + floor(x / 7) }", 3 * np.floor(WHOLE / np.float32(7))),
    "through a loop": ("y = 0  for k in serial(3) { y = floor(y) + x / 7 }", None),
}


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", SEEN)
def test_a_quotient_that_is_rounded_or_compared_is_one(name: str) -> None:
    line, wanted = SEEN[name]
    low = lower(load_text(TEXT.format(line)).instantiate())
    assert "AscendC::Div" in str(low.source)
    if wanted is not None:
        np.testing.assert_array_equal(low.run({"X": WHOLE}).outputs["C"], wanted)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["y = exp(x / 7)", "y = exp(x / (m + 7)[:, None])"], ids=["constant", "rows"])
def test_other_quotients_are_products(line: str) -> None:
    source = str(lower(load_text(TEXT.format(line)).instantiate()).source)
    assert "AscendC::Mul" in source
