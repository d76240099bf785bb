"""Kernels of running sums, and of sums of rows that end."""

from __future__ import annotations

RUNNING = """
kernel sums[M=128, N=200, BM=64, BN=64](X: f32[M, N]) -> (C: f32[1, M], E: f32[M, N]) {
  grid bx = ceildiv(M, BM)
  shared   x: f32[BM, BN]
  fragment m: f32[BM] = -inf, l: f32[BM] = 0, n: f32[BM]
  for j in pipelined(ceildiv(N, BN)) {
    x = X[bx*BM, j*BN] * 2
    n = max(m, rowmax(x))
    x = exp(x - n[:, None])
    l = l * exp(m - n) + rowsum(x)
    m = n
    E[bx*BM, j*BN] = x
  }
  C[0, bx*BM] = l
}
"""
SUMS = {
    "running sums of tiles of columns that end": RUNNING,
    "running sums of tiles that end": RUNNING.replace("M=128", "M=72"),
    "sums of rows whose length is read": """
kernel sums[M=64, N=256](X: f32[M, N], count: i32[1]) -> C: f32[M] {
  grid bx = 1
  shared x: f32[M, N], s: f32[M]
  x = X[0 : M, 0 : count[0] + 100]
  s = rowsum(x)
  C[0] = s
}
""",
    "sums of rows, of which as many are there as is read": """
kernel sums[M=64, N=256](X: f32[M, N], count: i32[2]) -> C: f32[M] {
  grid bx = 1
  shared x: f32[M, N], s: f32[M]
  x = X[0 : count[0], 0 : count[1]]
  s = rowsum(x)
  C[0] = s
}
""",
    "sums of running sums that end": """
kernel running[M=12, N=44](X: f32[M, N]) -> Y: f32[M] {
  grid bx = 1
  shared x: f32[16, 48], y: f32[16]
  x = X[0, 0]
  y = rowsum(cumsum(x))
  Y[0] = y
}
""",
    "running sums of columns": """
kernel downwards[M=32, N=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N]
  x = X[0, 0]
  y = cumsum(x, 0)
  Y[0, 0] = y
}
""",
    "rows taken one by one": """
kernel taken[M=40, N=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N], r: f32[N]
  x = X[0, 0] * 2
  y = 0
  for i in serial(M - 1) {
    r = x[i + 1, :]
    y = y + r[None, :]
  }
  Y[0, 0] = y
}
""",
    "running sums of a vector": """
kernel along[N=64](X: f32[N]) -> Y: f32[N] {
  grid bx = 1
  shared x: f32[N], y: f32[N]
  x = X[0]
  y = cumsum(x)
  Y[0] = y
}
""",
    "a product times running sums": """
kernel decayed[M=64, N=128, K=64](A: f16[M, K], B: f16[K, N], G: f32[M]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, K], b: f16[K, N]
  fragment c: f32[M, N], g: f32[M]
  a = A[0, 0]
  b = B[0, 0]
  g = G[0]
  c = a @ b
  g = cumsum(g)
  C[0, 0] = c * exp(g)[:, None]
}
""",
}
