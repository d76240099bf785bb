"""Tiles that tensors cut off at different places: a result is there where all of its operands are."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

TEXT = """kernel ends[M=13, N=40](X: f32[M, 2*N], V: f32[N], R: f32[M + 2, N]) -> (Y: f32[M, N], S: f32[M]) {
  grid bx = 2
  shared x: f32[8, 128], z: f32[8, 128], v: f32[128], r: f32[8, 128]
  fragment s: f32[8], y: f32[8, 128]
  x = X[bx*8, 0]
  z = X[bx*8, N]
  v = V[0]
  r = R[bx*8, 0]
  BODY
}
"""
RNG = np.random.default_rng(0)
X, V, R = (RNG.uniform(-1, 1, shape).astype(np.float32) for shape in ((13, 80), (40,), (15, 40)))
LEFT, RIGHT = X[:, :40], X[:, 40:]
MEANINGS = [
    ("Y[bx*8, 0] = x * z", LEFT * RIGHT),
    ("Y[bx*8, 0] = x * v[None, :]", LEFT * V),
    ("Y[bx*8, 0] = r - x", R[:13] - LEFT),
    ("Y[bx*8, 0] = select(x > z, r, x)", np.where(LEFT > RIGHT, R[:13], LEFT)),
    ("parallel (i, j) in (8, 128) { y[i, j] = x[i, j] * v[j] + r[i, j] }  Y[bx*8, 0] = y", LEFT * V + R[:13]),
    ("parallel (i, j) in (8, 128) { y[i, j] = select(x[i, j] > v[j], r[i, j], x[i, j]) }  Y[bx*8, 0] = y",
     np.where(LEFT > V, R[:13], LEFT)),
    ("for i in serial(8) { y[i, :] = z[i, :] / max(abs(x[i, :] * z[i, :])) }  Y[bx*8, 0] = y",
     RIGHT / np.abs(LEFT * RIGHT).max(1, keepdims=True)),
]  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("body", "meant"), MEANINGS, ids=[m[0] for m in MEANINGS])
def test_a_result_ends_where_the_shorter_of_its_operands_does(body: str, meant: np.ndarray) -> None:
    text = TEXT.replace("BODY", body).replace("(Y: f32[M, N], S: f32[M])", "Y: f32[M, N]")
    got = lower(load_text(text).instantiate()).run({"X": X, "V": V, "R": R}).outputs["Y"]
    np.testing.assert_allclose(got, meant, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_what_only_the_longer_operand_has_takes_no_part_in_a_sum() -> None:
    text = TEXT.replace("BODY", "s = rowsum(x * z)  S[bx*8] = s").replace("(Y: f32[M, N], S: f32[M])", "S: f32[M]")
    got = lower(load_text(text).instantiate()).run({"X": X, "V": V, "R": R}).outputs["S"]
    np.testing.assert_allclose(got, (LEFT * RIGHT).sum(1), rtol=1e-5)
