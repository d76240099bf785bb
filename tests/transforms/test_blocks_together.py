"""Blocks together: the same numbers, along any dimension of the grid, and loads of what they share once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tests.transforms.test_rows_behind import NORM
from tests.transforms.test_split_k import CHAINED, IN_A_LOOP, whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import reachable
from tile_eg.search.compiler import meaning
from tile_eg.transforms.blocks_together import chained, side_by_side, together

GATED = """
kernel gated[M=50, N=60, K=70, BM=16, BN=16, BK=16](X: f16[M, K], G: f16[K, N], U: f16[K, N], R: f32[N]) -> Y: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared x: f16[BM, BK], g: f16[BK, BN], u: f16[BK, BN], r: f32[BN]
  fragment c: f32[BM, BN] = 0, d: f32[BM, BN] = 0
  r = R[by*BN]
  for k in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, k*BK]
    g = G[k*BK, by*BN]
    u = U[k*BK, by*BN]
    c += x @ g
    d += x @ u
  }
  Y[bx*BM, by*BN] = max(c, 0) * d + r[None, :]
}
"""
EVERY_SECOND = """
kernel apart[M=50, N=128, K=70, BM=16, BN=16, BK=16](X: f16[M, K], W: f16[K, N]) -> Y: f32[M, N // 2] {
  grid (bx, by) = (ceildiv(M, BM), N // (2 * BN))
  shared x: f16[BM, BK], w: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, k*BK]
    w = W[k*BK, by*2*BN]
    c += x @ w
  }
  Y[bx*BM, by*BN] = c
}
"""
BY_PLACE = """
kernel placed[M=64, N=64, K=64, BM=16, BN=16, BK=16](X: f16[M, K], W: f16[K, N]) -> Y: f32[M, N] {
  grid (bx, by) = (M // BM, N // BN)
  shared x: f16[BM, BK], w: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(K // BK) {
    x = X[bx*BM, k*BK]
    w = W[k*BK, by*BN]
    c += x @ w
  }
  parallel (i, j) in (BM, BN) {
    Y[bx*BM + i, by*BN + j] = select(by*BN + j <= bx*BM + i, c[i, j] + i, 0)
  }
}
"""
COLUMN_MAXIMA = """
kernel maxima[M=4, N=16](X: f32[M, N]) -> Y: f32[M * N] {
  grid bx = M
  shared x: f32[2, N]
  x = X[bx // 2 * 2, 0]
  Y[bx*N] = colmax(x)
}
"""
ROWS_OF_ANOTHER = """
kernel another[M=16, N=64](X: f32[M, N], S: f32[N, M]) -> Y: f32[M, N] {
  grid bx = N // M
  shared x: f32[M, M], s: f32[M, M]
  x = X[0, bx*M]
  s = S[bx*M, 0]
  for i in serial(M) { x[i, :] = x[i, :] + sum(s[i, :]) }
  Y[0, bx*M] = x
}
"""
SLIDING = """
kernel sliding[M=4, N=8](X: f32[2 * N, N]) -> Y: f32[N, M * N] {
  grid bx = M
  shared x: f32[N, N]
  x = X[bx, 0]
  Y[0, bx*N] = x
}
"""
ROW_LOOP = """
kernel rows[M=8, N=16](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = M
  shared x: f32[1, N]
  x = X[bx, 0]
  for i in serial(1) { x[i, :] = x[i, :] + sum(x[i, :]) }
  Y[bx, 0] = x
}
"""


CHAIN = """
kernel chain[H=4, L=40, E=32, C=16, BE=16](W: f16[H, L, 16], U: f32[H, L, E]) -> (
  S: f32[H, ceildiv(L, C), 16, E], N: f32[H, L, E]
) {
  grid (be, h) = (E // BE, H)
  shared   w: f16[C, 16], u: f32[C, BE], s: f16[16, BE]
  fragment state: f32[16, BE] = 1
  for c in pipelined(ceildiv(L, C)) {
    w = W[h, c*C, 0]
    u = U[h, c*C, be*BE]
    s = state
    S[h, c, 0, be*BE] = state
    u = u - (w @ s) * 0.01
    N[h, c*C, be*BE] = u
    state = state * 0.5 + (w.T @ f16(u)) * 0.01
  }
}
"""
"""A trip needs the state that the one before it made, and stores two tiles."""


@pytest.mark.parametrize(("along", "count"), [(0, 2), (1, 2), (1, 4)])
def test_loops_that_hand_on_states_and_store_in_their_trips_stand_side_by_side(along, count):
    k = kernel(CHAIN)
    values = to_values(k)
    made, arrays = side_by_side(values, along, count), whole_numbers(k)
    assert chained(values) and made.blocks == 8 // count
    got, want = run_values(made, arrays), meaning(k, arrays)
    assert all(np.array_equal(got[name], want[name]) for name in ("S", "N"))


def test_a_sum_of_products_does_not_wait_for_itself():
    assert not chained(to_values(kernel(GATED)))


@pytest.mark.parametrize(("along", "count"), [(0, 2), (0, 4), (1, 2), (1, 4)])
def test_the_meaning_stays(along, count):
    k = kernel(GATED)
    made, arrays = together(to_values(k), along, count), whole_numbers(k)
    assert made.blocks == 16 // count
    assert np.array_equal(run_values(made, arrays)["Y"], meaning(k, arrays)["Y"])


@pytest.mark.parametrize(("along", "shape"), [(0, (32, 16)), (1, (16, 32))])
def test_tiles_beside_each_other_become_one(along, shape):
    (product,) = {(t.rows, t.cols) for t in reachable(together(to_values(kernel(GATED)), along, 2)) if t.op == "matmul"}
    assert product == shape


@pytest.mark.parametrize(("text", "along"), [(EVERY_SECOND, 0), (EVERY_SECOND, 1), (BY_PLACE, 0)])
def test_tiles_that_lie_apart_keep_their_numbers(text, along):
    k = kernel(text)
    made, arrays = together(to_values(k), along, 2), whole_numbers(k)
    assert np.array_equal(run_values(made, arrays)["Y"], meaning(k, arrays)["Y"])


def test_what_blocks_share_is_loaded_once():
    """Two tiles of W, whose columns lie apart, and one of X."""
    made = together(to_values(kernel(EVERY_SECOND)), 1, 2)
    assert sum(t.op == "load" for t in reachable(made)) == 3


def test_all_sums_stand_in_one_loop():
    (loop,) = (t for t in reachable(together(to_values(kernel(EVERY_SECOND)), 1, 2)) if t.op == "loop")
    assert len(loop.args[2]) == 2


def test_rows_may_be_reduced_behind_it():
    k = kernel(NORM, M=60)
    made, arrays = together(to_values(k), 0, 2), whole_numbers(k)
    assert np.array_equal(run_values(made, arrays)["Y"], meaning(k, arrays)["Y"])


@pytest.mark.parametrize(
    ("text", "along", "count"),
    [(GATED, 0, 3), (GATED, 2, 2), (GATED, 0, 1), (CHAINED, 0, 2), (IN_A_LOOP, 0, 2)],
    ids=["not a whole number", "no such dimension", "one alone", "a second product", "a loop around it"],
)
def test_other_kernels_stay_as_they_are(text, along, count):
    assert together(to_values(kernel(text)), along, count) is None


@pytest.mark.parametrize("text", [COLUMN_MAXIMA, ROWS_OF_ANOTHER, ROW_LOOP])
def test_vectors_have_one_row_and_rows_are_reduced_whole(text):
    k = kernel(text)
    made, arrays = together(to_values(k), 0, 2), whole_numbers(k)
    assert made is None or np.array_equal(run_values(made, arrays)["Y"], meaning(k, arrays)["Y"])
    assert made is not None or text is ROWS_OF_ANOTHER


def test_rows_that_are_some_further_are_no_columns():
    """In memory a row's columns go on as the next row, but no load takes rows that lie over one another."""
    assert together(to_values(kernel(SLIDING)), 0, 2) is None
