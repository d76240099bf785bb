"""Rows in panels: the same numbers, for any tile whose operands fit L1."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.extract.kernels import CHAIN, FIBONACCI, GATED, RELU_CAST, kernel
from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import Values
from tile_eg.search.alike import values_of_any_size
from tile_eg.search.compiler import lower, meaning
from tile_eg.transforms.any_size import at
from tile_eg.transforms.row_panels import in_panels

GEMM = """
kernel gemm[M=300, N=300, K=100, BM=256, BN=256, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  C[bx*BM, by*BN] = relu(c)
}
"""
SOFTMAX = """
kernel softmax[M=100, N=40, BM=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N]
  fragment m: f32[BM], l: f32[BM]
  x = X[bx*BM, 0]
  m = rowmax(x)
  x = exp(x - m[:, None])
  l = rowsum(x)
  parallel (i, j) in (BM, N) { x[i, j] = x[i, j] / l[i] }
  Y[bx*BM, 0] = x
}
"""
COLUMNS = """
kernel columns[M=64, N=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N]
  x = X[0, 0]
  x = x / colsum(x)[None, :]
  Y[0, 0] = x
}
"""

A_LOOP_CALLED_PANEL = re.sub(r"\bk\b", "panel", GEMM)


def inputs(k):
    random = np.random.default_rng(3)
    return {t.name: random.uniform(-1, 1, t.shape).astype(t.dtype.numpy) for t in k.tensors if not t.output}


@pytest.mark.parametrize("panels", [2, 4])
@pytest.mark.parametrize(
    "text", [GEMM, SOFTMAX, GATED, RELU_CAST, CHAIN, COLUMNS, A_LOOP_CALLED_PANEL, FIBONACCI.replace("M=32", "M=64")]
)
def test_panels_have_the_meaning_of_the_whole(text, panels):
    k = kernel(text)
    parted = in_panels(to_values(k), panels)
    assert parted is not None
    arrays = inputs(k)
    want, got = meaning(k, arrays), run_values(parted, arrays)
    for name in want:
        np.testing.assert_allclose(got[name].astype(np.float32), want[name].astype(np.float32), rtol=2e-3, atol=2e-3)


def test_panels_begin_where_the_rows_of_a_call_lie():
    text = """kernel add[M: dyn, N: dyn, BM=8, BN=16](X: f32[M, N]) -> Y: f32[M, N] {
      grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
      shared x: f32[BM, BN]
      x = X[bx*BM, by*BN]
      Y[bx*BM, by*BN] = x + 1 }"""
    values = values_of_any_size(load_text(text).instantiate, {"M": 256, "N": 256})
    assert isinstance(values, Values)
    parted = in_panels(values, 4)
    assert parted is not None
    x = np.arange(13 * 37, dtype=np.float32).reshape(13, 37)
    np.testing.assert_array_equal(run_values(at(parted, {"M": 13, "N": 37}), {"X": x})["Y"], x + 1)


def test_panels_of_products_are_whole_fractals():
    assert in_panels(to_values(kernel(GEMM, BM=32)), 4) is None


def test_panels_on_vector_cores_may_be_one_row():
    values = to_values(kernel(FIBONACCI))
    assert in_panels(values, 32) is not None and in_panels(values, 64) is None


@pytest.mark.slow
def test_rows_that_fill_ub_are_gone_through_one_by_one():
    text = """kernel rms[M=64, N=7168, BM=4](X: f16[M, N], W: f16[N]) -> Y: f16[M, N] {
      grid bx = ceildiv(M, BM)
      shared x: f16[BM, N], w: f16[N]
      fragment f: f32[BM, N]
      x = X[bx*BM, 0]
      w = W[0]
      f = x
      Y[bx*BM, 0] = f * rsqrt(rowsum(f * f) / N + 1e-5)[:, None] * w[None, :] }"""
    low = lower(load_text(text).instantiate({"M": 32768}))
    assert low.form.moves == ("row-panels 4",)


def test_a_kernel_that_reads_what_it_stores_stays_whole():
    again = COLUMNS.replace("Y[0, 0] = x", "Y[0, 0] = x\n  x = Y[0, 0]\n  x = x * 2\n  Y[0, 0] = x")
    assert in_panels(to_values(kernel(again)), 2) is None


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("tile", [(256, 256), (512, 128), (128, 512), (256, 512)])
def test_any_tile_that_fits_l1_compiles_and_computes(tile):
    k = kernel(GEMM, BM=tile[0], BN=tile[1])
    arrays = inputs(k)
    run = lower(k).run(arrays)
    np.testing.assert_allclose(run["C"].astype(np.float32), meaning(k, arrays)["C"].astype(np.float32), rtol=4e-3, atol=4e-3)


@pytest.mark.slow
def test_operands_that_do_not_fit_l1_are_still_refused():
    with pytest.raises(TileError, match="of L1 at once"):
        lower(kernel(GEMM, BM=256, BN=256, BK=1024, K=2048))
