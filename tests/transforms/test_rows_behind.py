"""What needs whole rows of a product behind its tiles: the same numbers, for any tiles, and only where rows and columns go on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extract.kernels import kernel
from tests.transforms.test_split_k import CHAINED, PRODUCT, whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.search.compiler import meaning
from tile_eg.transforms.rows_behind import behind, in_tiles, product_of

NORM = """
kernel norm[M=40, N=24, K=100, BM=16, BK=16](
  A: f32[M, K], B: f32[K, N], R: f32[M, N], g: f32[N]
) -> (H: f32[M, N], Y: f32[M, N]) {
  grid bx = ceildiv(M, BM)
  shared a: f32[BM, BK], b: f32[BK, N], r: f32[BM, N], v: f32[N]
  fragment c: f32[BM, N] = 0, s: f32[BM]
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, 0]
    c += a @ b
  }
  r = R[bx*BM, 0]
  v = g[0]
  c = c + r
  H[bx*BM, 0] = c
  s = rowmax(c)
  Y[bx*BM, 0] = (c - s[:, None]) * v[None, :]
}
"""
GATED = """
kernel gated[M=40, N=24, K=100, BM=16, BK=16](X: f32[M, K], G: f32[N, K], U: f32[N, K]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, BK], g: f32[N, BK], u: f32[N, BK]
  fragment c: f32[BM, N] = 0, d: f32[BM, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, k*BK]
    g = G[0, k*BK]
    u = U[0, k*BK]
    c += x @ g.T
    d += x @ u.T
  }
  c = max(c, 0) + d
  Y[bx*BM, 0] = c - rowmax(c)[:, None]
}
"""
SCALED = """
kernel scaled[M=40, N=24, K=96, BM=16, BK=16](A: f16[M, K], B: i8[K, N], S: f16[N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared a: f16[BM, BK], b: i8[BK, N], s: f16[N], w: f16[BK, N]
  fragment c: f32[BM, N] = 0
  s = S[0]
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, 0]
    w = f16(b) * s[None, :]
    c += a @ w
  }
  Y[bx*BM, 0] = c - rowmax(c)[:, None]
}
"""
TILES = st.sampled_from([16, 32, 48, 64])


def both(k, rows, cols, panels=1):
    """The outputs of both phases."""
    product, arrays = product_of(to_values(k)), whole_numbers(k)
    sums = run_values(in_tiles(product, rows, cols), arrays)
    second = behind(product, panels)
    return run_values(second, arrays | sums) if second else meaning(k, arrays)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(17, 70), TILES, TILES, st.sampled_from([1, 2, 8]))
def test_two_phases_have_the_meaning_of_the_whole(m, n, depth, rows, cols, panels):
    k = kernel(NORM, M=m, N=n, K=depth)
    got, want = both(k, rows, cols, panels), meaning(k, whole_numbers(k))
    assert all(np.array_equal(got[name], want[name]) for name in want)


@pytest.mark.parametrize("text", [GATED, SCALED], ids=["two sums of transposed operands", "an operand that is computed"])
def test_of_what_operands_are_made_stays(text):
    k = kernel(text)
    assert np.array_equal(both(k, 32, 16)["Y"], meaning(k, whole_numbers(k))["Y"])


def test_the_tiles_are_a_grid_of_their_own():
    first = in_tiles(product_of(to_values(kernel(NORM, M=100, N=70))), 64, 32)
    assert first.grid == (2, 3) and first.blocks == 6


def test_one_block_has_tiles_too():
    assert in_tiles(product_of(to_values(kernel(NORM, M=16, N=64))), 16, 16).blocks == 4


REFUSED = {
    "no row is reduced": PRODUCT,
    "a second product": CHAINED,
    "sums not from zero": NORM.replace("fragment c: f32[BM, N] = 0", "fragment c: f32[BM, N] = 1"),
    "rows that overlap": NORM.replace("A[bx*BM, k*BK]", "A[bx*8, k*BK]"),
    "other columns in each block": NORM.replace("B[k*BK, 0]", "B[k*BK, bx]"),
    "one trip": NORM.replace("K=100", "K=16"),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_where_it_does_not_hold_nothing_is_offered(text):
    assert product_of(to_values(kernel(text))) is None


def test_rows_that_no_block_has_are_left_out():
    k = kernel(NORM.replace("ceildiv(M, BM)\n", "ceildiv(M, BM) - 1\n"))
    got, want = both(k, 64, 16), meaning(k, whole_numbers(k))
    assert all(np.array_equal(got[name], want[name], equal_nan=True) for name in want)
