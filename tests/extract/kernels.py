"""Small kernels whose schedules are easy to get wrong, as `.tile` text."""

from __future__ import annotations

from functools import lru_cache

from tile_eg.chips import load_chip
from tile_eg.cost_models import search_model
from tile_eg.egraph import Graph, saturate
from tile_eg.extract.pricing import Pricer
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel

CHIP = load_chip("910B2")

GATED = """
kernel gated[M=64, N=64, K=128, BK=32](A: f16[M, K], G: f16[K, N], U: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, BK], g: f16[BK, N], u: f16[BK, N]
  fragment x: f32[M, N] = 0, y: f32[M, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[0, k*BK]
    g = G[k*BK, 0]
    u = U[k*BK, 0]
    x += a @ g
    y += a @ u
  }
  C[0, 0] = x * y
}
"""

SWAP = """
kernel swap[M=32, N=64](A: f32[M, N], B: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared a: f32[M, N], b: f32[M, N], t: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  for i in serial(5) {
    t = a
    a = b
    b = t
  }
  C[0, 0] = a
  D[0, 0] = b
}
"""

SWAP_SHORT = """
kernel swap_short[M=20, N=17](A: f32[M, N], B: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared a: bf16[M, N], b: bf16[M, N], t: bf16[M, N]
  a = A[0, 0]
  b = B[0, 0]
  for i in serial(5) {
    t = a
    a = b
    b = t
  }
  C[0, 0] = a
  D[0, 0] = b
}
"""

FIBONACCI = """
kernel fibonacci[M=32, N=64](A: f32[M, N], B: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared a: f32[M, N], b: f32[M, N], t: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  for i in serial(6) {
    t = a + b
    a = b
    b = t
  }
  C[0, 0] = a
  D[0, 0] = b
}
"""

SHIFT = """
kernel shift[M=32, N=64](A: f32[M, N], B: f32[M, N], C: f32[M, N]) -> (D: f32[M, N], E: f32[M, N]) {
  grid bx = 1
  shared a: f32[M, N], b: f32[M, N], c: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  c = C[0, 0]
  for i in serial(3) {
    a = a + b
    b = c
  }
  D[0, 0] = a
  E[0, 0] = b
}
"""

COPIED_LATE = """
kernel copied_late[M=32, N=64](A: f32[M, N], B: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared a: f32[M, N], b: f32[M, N], t: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  for i in serial(4) {
    t = a
    a = b * 0.5 + a
    b = abs(t)
    a = a * 0.25 + b
  }
  C[0, 0] = a
  D[0, 0] = b
}
"""

ONE_VALUE_TWO_TENSORS = """
kernel both[M=64, N=128](X: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared x: f32[M, N]
  x = X[0, 0]
  x = exp(x)
  C[0, 0] = x
  D[0, 0] = x
}
"""

OPERAND_LIVES_ON = """
kernel lives[M=64, N=128](X: f32[M, N], Y: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N], a: f32[M, N]
  x = X[0, 0]
  y = Y[0, 0]
  y = exp(y)
  a = x * 2.0 + y
  C[0, 0] = a
  D[0, 0] = a * y
}
"""

RELU_CAST = """
kernel relu_gemm[M=64, N=64, K=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid bx = 1
  shared a: f16[M, K], b: f16[K, N]
  fragment c: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  c = a @ b
  C[0, 0] = relu(c)
}
"""

CHAIN = """
kernel chain[M=64, N=64, K=64](A: f16[M, K], B: f16[K, N], D: f16[N, M]) -> C: f32[M, M] {
  grid bx = 1
  shared a: f16[M, K], b: f16[K, N], d: f16[N, M], p: f16[M, N]
  fragment c: f32[M, N], e: f32[M, M]
  a = A[0, 0]
  b = B[0, 0]
  d = D[0, 0]
  c = a @ b
  p = c
  e = p @ d
  C[0, 0] = e
}
"""

CONSTANT_TAIL = """
kernel constant_tail(V: f32[20]) -> (C: f32[20, 7], D: f32[20, 7]) {
  grid bx = 2
  shared v: f32[16], t: f32[16, 24], z: f32[16, 24]
  v = V[bx*16]
  t = v[:, None]
  z = 3.0
  C[bx*16, 0] = t
  D[bx*16, 0] = z
}
"""

TANH_HALF = """
kernel tanh_half(X: f16[16, 64]) -> C: f32[16, 64] {
  grid bx = 1
  shared x: f16[16, 64]
  x = X[0, 0]
  x = tanh(x * 0.004)
  C[0, 0] = f32(x) * 100
}
"""

NARROW_PRODUCT = """
kernel narrow_product(A: f16[12, 20], B: f16[20, 7], D: f16[7, 30]) -> (C: f32[12, 30]) {
  grid bx = 1
  shared a: f16[16, 32], b: f16[32, 16], d: f16[16, 32], p: f16[16, 16]
  a = A[0, 0]
  b = B[0, 0]
  d = D[0, 0]
  p = a @ b
  C[0, 0] = p @ d
}
"""

TWO_PRODUCTS = """
kernel two_products[M=100, N=100, K=256, L=32](A: f16[M, K], B: f16[K, N], C: f16[M, L], D: f16[L, N]) -> E: f32[M, N] {
  grid bx = 1
  shared a: f16[M, K], b: f16[K, N], c: f16[M, L], d: f16[L, N]
  fragment e: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  c = C[0, 0]
  d = D[0, 0]
  e = a @ b + c @ d
  E[0, 0] = e
}
"""

PRODUCT_AND_SQUARE = """
kernel product_and_square[M=144, K=64](A: f16[M, K], B: f16[K, M]) -> (C: f32[M, M], D: f16[M, M]) {
  grid bx = 1
  shared a: f16[M, K], b: f16[K, M], t: f16[M, M]
  fragment c: f32[M, M], d: f32[M, M]
  a = A[0, 0]
  b = B[0, 0]
  c = a @ b
  t = c
  d = t @ t.T + c
  C[0, 0] = d
  D[0, 0] = max(t, 0)
}
"""

SHORTER_PRODUCT = """
kernel shorter_product[M=100, N=64, K=64](A: f16[128, K], B: f16[K, N], C: f16[M, K], D: f16[K, N]) -> E: f32[M, N] {
  grid bx = 1
  shared a: f16[128, K], b: f16[K, N], c: f16[128, K], d: f16[K, N]
  fragment e: f32[128, N]
  a = A[0, 0]
  b = B[0, 0]
  c = C[0, 0]
  d = D[0, 0]
  e = a @ b + c @ d
  E[0, 0] = e
}
"""

TRICKY = {
    "gated": GATED, "swap": SWAP, "swap_short": SWAP_SHORT, "fibonacci": FIBONACCI, "shift": SHIFT, "copied_late": COPIED_LATE,
    "one_value_two_tensors": ONE_VALUE_TWO_TENSORS, "operand_lives_on": OPERAND_LIVES_ON, "relu_cast": RELU_CAST, "chain": CHAIN,
    "constant_tail": CONSTANT_TAIL, "tanh_half": TANH_HALF,
    "narrow_product": NARROW_PRODUCT, "two_products": TWO_PRODUCTS, "product_and_square": PRODUCT_AND_SQUARE,
    "shorter_product": SHORTER_PRODUCT,
}  # fmt: skip


def kernel(text: str, **sizes: int) -> Kernel:
    return load_text(text, "test.tile").instantiate(sizes)


@lru_cache(maxsize=64)
def graph_of(text: str, **sizes: int) -> Graph:
    """Made once for all tests of a process; they only read it."""
    return graph_made_now(text, **sizes)


def graph_made_now(text: str, **sizes: int) -> Graph:
    return saturate(to_values(kernel(text, **sizes)), CHIP)


def pricer(graph: Graph) -> Pricer:
    return Pricer(graph, CHIP, search_model("analytic", CHIP))
