"""Kernels in whose e-graphs every rule of facts has something to say; all operands are small."""

from __future__ import annotations

from benchmarks.rules.texts import texts
from tests.extract.test_corners import CORNERS

CHOICE = """
kernel choice[M=40, N=44](X: f32[M, N], Y: f32[M, N]) -> C: f32[M, N] {{
  grid bx = 3
  shared x: f32[16, 64], y: f32[16, 64], c: f32[16, 64]
  x = X[{0}]
  y = Y[{0}]
  parallel (i, j) in (16, 64) {{ c[i, j] = select({1}, exp(x[i, j]), y[i, j]) }}
  C[{0}] = c
}}
"""
COLUMNS = """
kernel columns[M=40, N=44](X: f32[M, N]) -> (C: f32[N], D: f32[M, N]) {
  grid bx = 1
  shared x: f32[M, 16], m: f32[16]
  for j in serial(3) {
    x = X[0, j*16]
    m = colmax(x)
    C[j*16] = m
    D[0, j*16] = f16(x) * x
  }
}
"""
NESTED_SUM = """
kernel nested[M=32, N=32, K=128](A: f16[K, M], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[16, M], b: f16[16, N]
  fragment c: f32[M, N] = 0
  for i in serial(2) {
    for k in serial(4) {
      a = A[i*64 + k*16, 0]
      b = B[i*64 + k*16, 0]
      c += a.T @ b
    }
  }
  C[0, 0] = c
}
"""
READ_BACK = """
kernel read_back[M=32, N=64](X: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, 32]
  x = X[0, 0]
  C[0, 0] = exp(x)
  y = C[0, 32]
  D[0, 0] = y
}
"""
SUMS = """
kernel sums[M=64, N=24](X: f32[M, N]) -> (S: f32[N], T: f32[16, N]) {
  grid bx = 2
  shared x: f32[16, N]
  for i in serial(2) {
    x = X[bx*32 + i*16, 0]
    atomic S[0] += colsum(x)
    atomic T[0, 0] += x
  }
}
"""
EPILOGUE = """
kernel epilogue[M=40, N=48, K=64](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 2
  shared a: f16[32, 32], b: f16[32, N]
  fragment c: f32[32, N] = 0
  for k in serial(2) {
    a = A[bx*32, k*32]
    b = B[k*32, 0]
    c += a @ b
  }
  C[bx*32, 0] = exp(c * 0.01)
}
"""
IN_PANELS = "epilogue in panels"
"""The kernel whose epilogue goes through panels of rows."""
FACTS = {
    IN_PANELS: EPILOGUE,
    "choice at a tail of rows": CHOICE.format("bx*16, 0", "x[i, j] > y[i, j]"),
    "choice at a tail of columns": CHOICE.format("0, bx*16", "x[i, j] > 0.5"),
    "choice in short rows": CHOICE.format("0, bx*16", "x[i, j] > y[i, j]").replace("f32[16, 64]", "f32[48, 16]").replace(
        "(16, 64)", "(48, 16)"
    ),
    "choice by place at a tail": CHOICE.format("bx*16, 0", "i >= j"),
    "columns": COLUMNS, "sums that blocks share": SUMS, "nested sum": NESTED_SUM, "read back": READ_BACK,
}  # fmt: skip
TRANSPOSED = ("a.T @ b", "a @ b.T", "a.T @ b.T", "a @ b")


def products() -> dict[str, str]:
    """A loop of products of each kind, at tails in all three dimensions."""
    return {f"sum of {p}": product(p.startswith("a.T"), p.endswith("b.T")) for p in TRANSPOSED}


def product(ta: bool, tb: bool, sizes: str = "M=40, N=40, K=104, BM=32, BN=32, BK=16") -> str:
    """A loop of products whose operands lie either way round."""
    (a, m), (b, n) = (("K, M", "BK, BM") if ta else ("M, K", "BM, BK")), (("N, K", "BN, BK") if tb else ("K, N", "BK, BN"))
    at_a, at_b = ("k*BK, bx*BM" if ta else "bx*BM, k*BK"), ("by*BN, k*BK" if tb else "k*BK, by*BN")
    return f"""
kernel product[{sizes}](A: f16[{a}], B: f16[{b}]) -> C: f32[M, N] {{
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared   a: f16[{m}], b: f16[{n}]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {{
    a = A[{at_a}]
    b = B[{at_b}]
    c += {"a.T" if ta else "a"} @ {"b.T" if tb else "b"}
  }}
  C[bx*BM, by*BN] = c
}}
"""


def fact_kernels() -> dict[str, str]:
    """All of them: the small ones that rules are tried on, the corners of the tests, and those above."""
    return texts() | CORNERS | FACTS | products()
