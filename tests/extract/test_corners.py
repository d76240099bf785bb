"""Kernels at the corners of what the rules know compute what they mean: the best choice, and one at random."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import kernel
from tile_eg.extract.chaos import Random
from tile_eg.extract.exact import Exact
from tile_eg.ir.index import bounds, variables
from tile_eg.ir.program import SetFlag, walk
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

TWO_PRODUCTS_ONE_SUM = """
kernel t[M=64, N=64](A: f16[M, 96], B: f16[96, N], D: f16[M, 40], E: f16[40, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, 96], b: f16[96, N], d: f16[M, 40], e: f16[40, N]
  fragment c: f32[M, N] = 0
  a = A[0, 0]
  b = B[0, 0]
  d = D[0, 0]
  e = E[0, 0]
  c += a @ b
  c += d @ e
  C[0, 0] = c
}
"""

SMALL_AND_DEEP = """
kernel t[M=16, N=16, K=1024](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, K], b: f16[K, N]
  fragment c: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  c = a @ b
  C[0, 0] = c
}
"""

NAMES_OF_COUNTERS = """
kernel t[M=16, N=16, K=2048](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, 1024], b: f16[1024, N]
  fragment c: f32[M, N] = 0
  for c_k in serial(2) {
    a = A[0, c_k*1024]
    b = B[c_k*1024, 0]
    c += a @ b
  }
  C[0, 0] = c
}
"""

BF16_RELU = """
kernel t[M=64, N=64](A: bf16[M, N], B: bf16[M, N]) -> C: bf16[M, N] {
  grid bx = 1
  shared a: bf16[M, N], b: bf16[M, N]
  a = A[0, 0]
  b = B[0, 0]
  C[0, 0] = bf16(relu(f32(a) + f32(b)))
}
"""

BF16_BROADCAST = """
kernel t[M=64, N=64](A: bf16[M]) -> C: bf16[M, N] {
  grid bx = 1
  shared a: bf16[M], c: bf16[M, N]
  a = A[0]
  parallel (i, j) in (M, N) { c[i, j] = a[i] }
  C[0, 0] = c
}
"""

F16_TO_BF16 = """
kernel t[M=64, N=64](A: f16[M, N]) -> C: bf16[M, N] {
  grid bx = 1
  shared a: f16[M, N]
  a = A[0, 0]
  C[0, 0] = bf16(a)
}
"""

F32_PRODUCT_OF_PRODUCTS = """
kernel t[M=32, N=64, K=64](A: f32[M, K], B: f32[K, N], D: f32[N, M]) -> C: f32[M, M] {
  grid bx = 1
  shared a: f32[M, K], b: f32[K, N], d: f32[N, M], p: f32[M, N]
  fragment e: f32[M, M]
  a = A[0, 0]
  b = B[0, 0]
  d = D[0, 0]
  p = a @ b
  e = p @ d
  C[0, 0] = e
}
"""

TWO_PASSES = """
kernel t[M=64, N=200, BN=64](A: f32[M, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f32[M, BN]
  fragment m: f32[M] = -inf
  for j in pipelined(ceildiv(N, BN)) {
    a = A[0, j*BN]
    m = max(m, rowmax(a))
  }
  for j in pipelined(ceildiv(N, BN)) {
    a = A[0, j*BN]
    C[0, j*BN] = exp(a - m[:, None])
  }
}
"""

SWAPS_IN_SWAPS = """
kernel swap[M=32, N=64](A: f32[M, N], B: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared a: f32[M, N], b: f32[M, N], t: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  for i in serial(3) {
    for j in serial(3) {
      t = a + b
      a = b
      b = t
    }
    t = a
    a = b
    b = t
  }
  C[0, 0] = a
  D[0, 0] = b * 0.001
}
"""

TAILS = """
kernel t[M=40, N=32](X: f32[M, N], Y: f32[M, N]) -> C: f32[M, N] {{
  grid bx = 3
  shared x: f32[16, N], y: f32[16, N], c: f32[16, N]
  x = X[bx*16, 0]
  y = Y[({}) * 16, 0]
  {}
  C[bx*16, 0] = c
}}
"""
QUOTIENT_OF_BX, SQUARE_OF_BX = "(bx*2 + 1) // 2", "bx*bx - min(bx, 1) * bx + min(bx, 1) - max(bx - 1, 0)"
TWO_TAILS = {
    "tails_of_a_sum": TAILS.format(QUOTIENT_OF_BX, "c = x * y + y"),
    "tails_of_a_nest": TAILS.format(QUOTIENT_OF_BX, "parallel (i, j) in (16, N) { c[i, j] = x[i, j] * y[i, j] + exp(x[i, j]) }"),
    "tails_of_a_choice": TAILS.format(
        SQUARE_OF_BX, "parallel (i, j) in (16, N) { c[i, j] = select(x[i, j] > y[i, j], x[i, j], exp(y[i, j])) }"
    ),
}

THREE_CUT_PRODUCTS = """
kernel mlp[M=1, D=512, H=320, BH=128](X: f16[M, D], W: f16[D, H], V: f16[D, H], U: f16[H, D]) -> Y: f16[M, D] {
  grid bx = 1
  shared x: f16[16, D], w: f16[D, BH], v: f16[D, BH], u: f16[BH, D], g: f16[16, BH]
  fragment a: f32[16, BH], b: f32[16, BH], y: f32[16, D] = 0
  x = X[0, 0]
  for h in pipelined(ceildiv(H, BH)) {
    w = W[0, h*BH]
    v = V[0, h*BH]
    u = U[h*BH, 0]
    a = x @ w
    b = x @ v
    g = a * sigmoid(a) * b
    y += g @ u
  }
  Y[0, 0] = y * 0.001
}
"""

CORNERS = {
    "two_products_one_sum": TWO_PRODUCTS_ONE_SUM, "small_and_deep": SMALL_AND_DEEP, "names_of_counters": NAMES_OF_COUNTERS,
    "bf16_relu": BF16_RELU, "bf16_broadcast": BF16_BROADCAST, "f16_to_bf16": F16_TO_BF16,
    "f32_product_of_products": F32_PRODUCT_OF_PRODUCTS, "two_passes": TWO_PASSES,
    "swaps_in_swaps": SWAPS_IN_SWAPS, "three_cut_products": THREE_CUT_PRODUCTS, **TWO_TAILS,
}  # fmt: skip

QUOTIENT = """
kernel t[M=16, N=64](A: f16[M, N]) -> C: f16[M, N] {
  grid bx = 1
  shared a: f16[M, N]
  a = A[0, 0]
  C[0, 0] = a / 0.00001
}
"""


@pytest.mark.few(11)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Exact(), Random(1)], ids=["exact", "random"])
@pytest.mark.parametrize("name", sorted(CORNERS))
def test_a_corner_computes_what_it_means(name, extractor):
    check_numbers(kernel(CORNERS[name]), extractor)


@pytest.mark.slow
def test_products_of_a_loop_hand_the_halves_of_l0_to_each_other():
    without = ["split-depth", "split-depth-added", "product-in-two"]
    made = lower(kernel(THREE_CUT_PRODUCTS), search=search_options(without=without))
    freed = [n for n in walk(made.program.cube) if isinstance(n, SetFlag) and (n.src, n.dst) == ("M", "MTE1")]
    inside = [n for n in freed if n.id.value is None]
    assert len(inside) == 3
    ids = [bounds(n.id, dict.fromkeys(variables(n.id), (0, 9))) for n in inside]
    assert {last - first for first, last in ids} == {1}


@pytest.mark.slow
def test_a_division_stays_one_where_the_reciprocal_would_overflow():
    a = np.array([[0.0, 0.25] * 32] * 16, np.float16)
    got = lower(kernel(QUOTIENT)).run({"A": a}).outputs["C"]
    np.testing.assert_allclose(got.astype(np.float32), a.astype(np.float32) / np.float16(1e-5), rtol=2e-3)
