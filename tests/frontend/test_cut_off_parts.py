"""Transposes, running sums, odd columns and gathered rows in tiles that a tensor's end cuts off."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.values import made_of
from tile_eg.report.compare import compare
from tile_eg.search.compiler import expected, lower

CUT = """
kernel cut[M=70, N=50](X: f32[M, N], I: i32[M], W: f16[90, N]) -> (
    B: f32[N, M], C: f16[M, N], D: f32[N, M], E: f32[M, N], F: f32[N], G: f32[M, 100]) {
  grid bx = ceildiv(M, 32)
  shared x: f32[32, 56], z: f32[56, 32], w: f16[32, 64], q: f32[56], y: f32[32, 112] = 0
  x = pad(X[bx*32, 0], 0)
  parallel (i, j) in (56, 32) { z[i, j] = x[j, i] + 1 }
  B[0, bx*32] = z
  parallel (i, j) in (32, 64) { w[i, j] = W[I[bx*32+i], j] * 2 }
  C[bx*32, 0] = w
  D[0, bx*32] = x.T * 2
  E[bx*32, 0] = cumsum(x) + cumsum(x, 0)
  q = rowsum(x.T)
  atomic F[0] += q
  parallel (i, j) in (32, 56) { y[i, 2*j] = x[i, j] * 3 }
  G[bx*32, 0] = y
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("window", ["pad(X[bx*32, 0], 0)", "X[bx*32, 0]"], ids=["zeros beyond", "as it is"])
def test_they_end_where_their_tensor_does(window: str) -> None:
    low, random = lower(load_text(CUT.replace("pad(X[bx*32, 0], 0)", window)).instantiate()), np.random.default_rng(1)
    x, w = random.uniform(-1, 1, (70, 50)).astype(np.float32), random.uniform(-1, 1, (90, 50)).astype(np.float16)
    at = random.integers(0, 90, 70).astype(np.int32)
    arrays = {"X": x, "I": at, "W": w}
    run = low.run(arrays)
    blocks = [x[i : i + 32] for i in range(0, 70, 32)]
    odd = np.zeros((70, 100), np.float32)
    odd[:, ::2] = x * 3
    assert not run.findings and all(c.good for c in compare(run.outputs, expected(low.kernel, arrays)))
    assert (run.outputs["B"] == x.T + 1).all() and (run.outputs["D"] == x.T * 2).all() and (run.outputs["G"] == odd).all()
    assert (run.outputs["C"] == w[at] * 2).all()
    np.testing.assert_allclose(run.outputs["F"], x.sum(0), atol=1e-5)
    np.testing.assert_allclose(run.outputs["E"], np.concatenate([b.cumsum(1) + b.cumsum(0) for b in blocks]), atol=1e-5)


ROWS = """
kernel rows[M=64, N=40](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(N, 16)
  shared x: f32[8, 16], y: f32[8, 16]
  for k in serial(M // 8) {
    for t in serial(8) {
      x = X[k*8, bx*16]
      y[t, :] = colsum(x * (t + 1))
    }
    Y[k*8, bx*16] = y
  }
}
"""


@pytest.mark.slow
def test_a_row_of_a_tile_that_is_cut_off_is_put_into_its_place() -> None:
    kernel = load_text(ROWS).instantiate()
    assert "choose_at" not in {t.op for t in made_of(to_values(kernel).outputs)}
    x = np.random.default_rng(1).integers(-4, 5, (64, 40)).astype(np.float32)
    sums = x.reshape(8, 8, 40).sum(axis=1)
    want = sums[:, None] * np.arange(1, 9, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(lower(kernel).run({"X": x}).outputs["Y"], want.reshape(64, 40))


STENCIL = """
kernel stencil[M=37, N=200](X: f32[M, N]) -> Y: f32[M, N] {
  grid (bx, by) = (ceildiv(M, 8), ceildiv(N, 128))
  shared x: f32[10, 130], y: f32[8, 128]
  x = pad(X[bx*8 - 1, by*128 - 1], 0)
  parallel (i, j) in (8, 128) { y[i, j] = x[i, j + 1] + x[i + 2, j + 1] - x[i + 1, j] }
  Y[bx*8, by*128] = y
}
"""


@pytest.mark.slow
def test_windows_of_the_same_columns_are_loaded_together() -> None:
    kernel = load_text(STENCIL).instantiate()
    loaded = sorted((t.rows, t.cols) for t in made_of(to_values(kernel).outputs) if t.op == "load")
    assert loaded == [(8, 128), (10, 128)]
    x = np.random.default_rng(1).integers(-4, 5, (37, 200)).astype(np.float32)
    p = np.pad(x, 1)
    np.testing.assert_array_equal(lower(kernel).run({"X": x}).outputs["Y"], p[:-2, 1:-1] + p[2:, 1:-1] - p[1:-1, :-2])
