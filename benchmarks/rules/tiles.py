"""Small kernels that are like no other: whole texts by name."""

from __future__ import annotations

TILES = {
    "sums of squares": """
kernel squares[M=16, N=1024](X: f32[M, N]) -> C: f32[M] {
  grid bx = 1
  shared x: f32[M, N]
  x = X[0, 0]
  C[0] = rowsum(x * x)
}
""",
    "long rows less their values": """
kernel less[M=16, N=1024](X: f32[M, N], V: f32[M]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], v: f32[M]
  x = X[0, 0]
  v = V[0]
  C[0, 0] = x - v[:, None]
}
""",
    "bf16 rows of one value": """
kernel tiles[M=64, N=128](V: bf16[M], W: bf16[N]) -> (C: bf16[M, N], D: bf16[M, N]) {
  grid bx = 1
  shared v: bf16[M], w: bf16[N], c: bf16[M, N], d: bf16[M, N]
  v = V[0]
  w = W[0]
  c = v[:, None]
  d = w[None, :]
  C[0, 0] = c
  D[0, 0] = d
}
""",
    "columns of one value": """
kernel tiles[M=64, N=128](W: f32[N]) -> C: f32[M, N] {
  grid bx = 1
  shared w: f32[N], c: f32[M, N]
  w = W[0]
  c = w[None, :]
  C[0, 0] = c
}
""",
    "row maxima": """
kernel maxima[M=64, N=128](X: f32[M, N]) -> C: f32[M] {
  grid bx = 1
  shared x: f32[M, N], m: f32[M]
  x = X[0, 0]
  m = rowmax(x)
  C[0] = m
}
""",
    "maxima of rows that a block holds": """
kernel maxima[M=100, N=3](X: f32[M, N]) -> C: f32[M] {
  grid bx = 1
  shared x: f32[M, N], m: f32[M]
  x = X[0, 0]
  m = rowmax(x)
  C[0] = m
}
""",
    "maxima of long rows in f16": """
kernel maxima[M=4, N=2100](X: f16[M, N]) -> C: f16[M] {
  grid bx = 1
  shared x: f16[M, N], m: f16[M]
  x = X[0, 0]
  m = rowmax(x)
  C[0] = m
}
""",
    "column sums": """
kernel sums[M=21, N=64](X: f32[M, N]) -> C: f32[N] {
  grid bx = 1
  shared x: f32[M, N], m: f32[N]
  x = X[0, 0]
  m = colsum(x)
  C[0] = m
}
""",
    "column sums of a short tile": """
kernel sums[M=21, N=90](X: f32[M, N]) -> C: f32[N] {
  grid bx = 2
  shared x: f32[M, 64], m: f32[64]
  x = X[0, bx*64]
  m = colsum(x)
  C[bx*64] = m
}
""",
    "loads with three slots": """
kernel threefold[M=32, N=256](X: f32[M, N]) -> C: f32[M, 64] {
  grid bx = 1
  shared x: f32[M, 64]
  fragment s: f32[M, 64] = 0
  for j in pipelined(4, stages=3) {
    x = X[0, j*64]
    s = s + exp(x)
  }
  C[0, 0] = s
}
""",
    "stores with one buffer": """
kernel alone[M=64, N=512](X: f32[M, N]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f32[M, 64]
  for j in pipelined(8, stages=1) {
    x = X[0, j*64]
    C[0, j*64] = exp(x) + x
  }
}
""",
    "stores in a loop": """
kernel stores[M=64, N=512](X: f32[M, N]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f32[M, 128]
  for j in pipelined(4) {
    x = X[0, j*128]
    C[0, j*128] = exp(x)
  }
}
""",
    "short row maxima": """
kernel maxima[M=64, N=100](X: f16[M, N]) -> C: f16[M] {
  grid bx = 1
  shared x: f16[M, N], m: f16[M]
  x = X[0, 0]
  m = rowmax(x)
  C[0] = m
}
""",
    "rows over their sums": """
kernel rows[M=64, N=128](X: f32[M, N]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N]
  x = X[0, 0]
  for i in serial(M) { x[i, :] = x[i, :] / sum(x[i, :]) }
  C[0, 0] = x
}
""",
    "product before its sum": """
kernel sums[M=128, N=128, K=512](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, 128], b: f16[128, N]
  fragment c: f32[M, N] = 0
  for k in pipelined(4) {
    a = A[0, k*128]
    b = B[k*128, 0]
    c = a @ b + c
  }
  C[0, 0] = c
}
""",
    "two short trips": """
kernel trips[M=2048, N=2048, K=64, BM=128, BN=128, BK=32](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(N, BN), ceildiv(M, BM))
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[by*BM, k*BK]
    b = B[k*BK, bx*BN]
    c += a @ b
  }
  C[by*BM, bx*BN] = c
}
""",
    "stored and loaded": """
kernel again[M=64, N=128](X: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N]
  x = X[0, 0]
  C[0, 0] = exp(x)
  y = C[0, 0]
  D[0, 0] = y * 2
}
""",
    "sums of rows of two parts": """
kernel sums[M=64, N=128](X: f32[M, N]) -> S: f32[M] {
  grid bx = 1
  shared x: f32[M, N]
  fragment y: f32[M, N]
  x = X[0, 0]
  parallel (i, j) in (M, 64) {
    y[i, j] = exp(x[i, j])
    y[i, j + 64] = x[i, j + 64] * 2
  }
  S[0] = rowsum(y * y)
}
""",
    "rows of three parts": """
kernel parts[M=256, N=192](X: f16[M, N], V: f32[M, 64]) -> C: f16[M, N] {
  grid bx = 4
  shared x: f16[64, N], v: f32[64, 64]
  fragment y: f16[64, N]
  x = X[bx*64, 0]
  v = V[bx*64, 0]
  parallel (i, j) in (64, 64) {
    y[i, j] = x[i, j] * v[i, j]
    y[i, j + 64] = x[i, j + 64] - v[i, j]
    y[i, j + 128] = x[i, j + 128] + v[i, j]
  }
  C[bx*64, 0] = y
}
""",
    "product of products in f32": """
kernel products[M=32, N=64, K=64](A: f32[M, K], B: f32[K, N], D: f32[N, M]) -> C: f32[M, M] {
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
""",
    "places": """
kernel places[M=64, N=128]() -> C: f32[M, N] {
  grid bx = 1
  shared c: f32[M, N]
  parallel (i, j) in (M, N) { c[i, j] = i + 2*j }
  C[0, 0] = c
}
""",
    "states that begin alike": """
kernel alike[M=16, N=64]() -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = 1
  shared c: f32[M, N], d: f32[M, N]
  c = 1
  d = 1
  for k in serial(64) {
    c = exp(c) + 1
    d = exp(d) + 2
  }
  C[0, 0] = c
  D[0, 0] = d
}
""",
    "state whose start lives on": """
kernel start[M=64, N=128](X: f32[M, N]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N], c: f32[M, N]
  x = X[0, 0]
  y = exp(x)
  c = y
  for i in serial(4) { c = exp(c) + y }
  C[0, 0] = c
}
""",
    "sums beside exponentials": """
kernel both[M=32, N=32, K=160](A: f16[M, K], B: f16[K, N], D: f16[N, M]) -> C: f32[M, M] {
  grid bx = 1
  shared a: f16[M, 32], b: f16[32, N], d: f16[N, M], p: f16[M, N]
  fragment c: f32[M, M] = 0
  d = D[0, 0]
  for k in pipelined(5) {
    a = A[0, k*32]
    b = B[k*32, 0]
    p = exp(a @ b)
    c += p @ d
  }
  C[0, 0] = c
}
""",
    "products with a tile and a part of it": """
kernel parts[M=1536, N=128, K=2048](A: f16[M, K], B: f16[N, K]) -> (S: f16[M, N], O: f16[M, 64]) {
  grid bx = ceildiv(M, 64)
  shared a: f16[64, 128], b: f16[N, 128], below: f16[64, 128]
  fragment s: f32[64, N] = 0, o: f32[64, 64] = 0
  for k in pipelined(ceildiv(K, 128)) {
    a = A[bx*64, k*128]
    b = B[0, k*128]
    below = B[64, k*128]
    s += a @ b.T
    o += a @ below.T
  }
  S[bx*64, 0] = s
  O[bx*64, 0] = o
}
""",
    "a product of rows from before their tensor on": """
kernel border[M=70, K=64, N=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid bx = ceildiv(M, 32)
  shared a: f16[32, K], b: f16[K, N]
  a = pad(A[bx*32 - 1, 0], 0)
  b = B[0, 0]
  C[bx*32, 0] = a @ b
}
""",
    "rows that two loops go through": """
kernel twice[M=50, N=256, BN=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = M
  shared   x: f32[1, BN]
  fragment l: f32[1] = 0
  for j in pipelined(ceildiv(N, BN)) {
    x = X[bx, j*BN]
    l = l + rowsum(x)
  }
  for k in pipelined(ceildiv(N, BN)) {
    x = X[bx, k*BN]
    Y[bx, k*BN] = x * l[:, None]
  }
}
""",
    "product and the sums of its operand": """
kernel sums[M=128, N=128, K=1024](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, 128], b: f16[128, N]
  fragment c: f32[M, N] = 0, s: f32[M] = 0
  for k in pipelined(8) {
    a = A[0, k*128]
    b = B[k*128, 0]
    c += a @ b
    s = s + rowsum(f32(a))
  }
  C[0, 0] = c * s[:, None]
}
""",
    "rows of what two vectors give": """
kernel decays[M=128, N=128](V: f32[M], W: f32[M]) -> C: f32[M, N] {
  grid bx = 1
  shared v: f32[M], w: f32[M], c: f32[M, N]
  v = V[0]
  w = W[0]
  parallel (i, j) in (M, N) { c[i, j] = exp(v[i] - w[i]) }
  C[0, 0] = c
}
""",
    "rows of a short vector": """
kernel widened[M=128, N=128](V: f16[M], W: f32[M]) -> C: f32[M, N] {
  grid bx = 1
  shared v: f16[M], w: f32[M], c: f32[M, N]
  v = V[0]
  w = W[0]
  parallel (i, j) in (M, N) { c[i, j] = v[i] * w[i] }
  C[0, 0] = c
}
""",
    "sum of the sums of rows": """
kernel total[M=64, N=128](X: f32[M, N]) -> C: f32[1] {
  grid bx = 1
  shared x: f32[M, N], t: f32[1, M]
  x = X[0, 0]
  t = rowsum(x)[None, :]
  C[0] = rowsum(t)
}
""",
    "rows times one number and another one a row": """
kernel scaled[M=64, N=512](X: f32[M, N], V: f32[M], W: f32[1]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], v: f32[M], w: f32[1], t: f32[1, N]
  x = X[0, 0]
  v = V[0]
  w = W[0]
  t = w[:, None]
  C[0, 0] = x * colsum(t)[None, :] * v[:, None]
}
""",
    "tiles times what is the same in all trips": """
kernel factors[H=512, M=32, N=64](X: bf16[H, M, N], Y: f32[M, N], W: f32[N]) -> C: f32[H, M] {
  grid bx = 1
  shared x: bf16[M, N], y: f32[M, N], w: f32[N]
  y = Y[0, 0]
  w = W[0]
  for h in pipelined(H) {
    x = X[h, 0, 0]
    C[h, 0] = rowsum(f32(x) * w[None, :] * y)
  }
}
""",
    "rows of a vector less its last value": """
kernel last[M=128, N=128](V: f32[M]) -> C: f32[M, N] {
  grid bx = 1
  shared v: f32[M], c: f32[M, N]
  v = V[0]
  parallel (i, j) in (M, N) { c[i, j] = exp(v[i] - v[M - 1]) }
  C[0, 0] = c
}
""",
    "sums of four short rows": """
kernel sums[M=32, N=256](X: f16[M, N]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f16[M + 3, N]
  fragment f: f32[M + 3, N], c: f32[M, N]
  x = pad(X[-3, 0], 0)
  f = x
  parallel (i, j) in (M, N) { c[i, j] = f[i, j] + f[i + 1, j] + f[i + 2, j] + f[i + 3, j] }
  C[0, 0] = c
}
""",
}  # fmt: skip
