"""The small kernels that rules are tried on, as `.tile` text.

A rule may save a little each time, or room: so some kernels do a thing twelve times, and some fill UB.
"""

from __future__ import annotations

from benchmarks.rules.sums import SUMS
from benchmarks.rules.tiles import TILES
from benchmarks.rules.windows import windows
from tests.extract.kernels import TRICKY

ELEMENTS = {
    "x + 1 + 2": "1 + (x + 2)", "1 - x": "1 - x", "x - 2": "x - 2", "2 * x": "x * 2 + 2 * x", "max(x, 2)": "max(x, 2)",
    "max(2, x)": "max(2, x)", "min(x, 2)": "min(x, 2)", "min(2, x)": "min(2, x)", "x / 3": "x / 3", "x + 0": "x + 0",
    "x * 1": "x * 1", "max(x, 0)": "max(x, 0)", "-x": "-x", "1 / x": "reciprocal(x)", "rsqrt": "rsqrt(x)",
    "sigmoid": "sigmoid(x)", "tanh": "tanh(x)", "y + x * 2": "y + x * 2", "y + x * y": "y + x * abs(y)",
    "x * y + y": "x * abs(y) + y",
    "x - v[:, None]": "x - v[:, None]", "v[:, None] - x": "v[:, None] - x", "x - w[None, :]": "x - w[None, :]",
    "w[None, :] - x": "w[None, :] - x", "x / v[:, None]": "x / v[:, None]",
    "x - v[:, None] * w[None, :]": "x - v[:, None] * w[None, :]",
    "y + v[:, None] * w[None, :]": "abs(y) + v[:, None] * w[None, :]",
    "x * v[:, None] * abs(v)[:, None]": "x * v[:, None] * abs(v)[:, None]",
    "a kept comparison": "select(select(x > y, 1, 0) != 0, x, y)",
    "abs(y) + x / 4": "abs(y) + x / 4", "abs(y) + x * 2": "abs(y) + x * 2",
}  # fmt: skip
ROW = {"row: exp(x) + x * y": "exp(x) + x * y", "row: x * y + exp(x)": "x * y + exp(x)"}
CHAINS = {
    "x + c": "({x} + {c})", "c + x": "({c} + {x})", "x - c": "({x} - {c})", "x * c": "({x} * {c})", "c * x": "({c} * {x})",
    "max(x, c)": "max({x}, {c})", "max(c, x)": "max({c}, {x})", "min(x, c)": "min({x}, {c})", "min(c, x)": "min({c}, {x})",
    "x - w[None, :]": "({x} - (w * {c})[None, :])", "w[None, :] - x": "((w * {c})[None, :] - {x})",
    "x - v[:, None]": "({x} - (v * {c})[:, None])", "v[:, None] - x": "((v * {c})[:, None] - {x})",
    "x - v[:, None] * w[None, :]": "({x} - (v * {c})[:, None] * w[None, :])",
}  # fmt: skip
CHAINS_OF_CALL = {n.replace("c", "s"): CHAINS[n].replace("{c}", "(s * {c})") for n in CHAINS if "[" not in n}
ELEMENTS_OF_CALL = {"s / x": "s / x", "y + x * s": "abs(y) + x * s"}
NEST_CHAINS = {"x > c": "select(x[i, j] > {c}, {x}, v[i])", "c < x": "select({c} < x[i, j], {x}, v[i])"}
INDEX_CHAINS = {"x + bx": "({x} + bx * {c})", "bx + x": "(bx * {c} + {x})"}
ELEMENT = """
kernel element[M=64, N=128](X: f32[M, N], Y: f32[M, N], V: f32[M], W: f32[N]) -> C: f32[M, N] {{
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N], v: f32[M], w: f32[N]
  x = X[0, 0]
  y = Y[0, 0]
  v = V[0]
  w = W[0]
  C[0, 0] = {}
}}
"""
ELEMENT_OF_CALL = ELEMENT.replace("W: f32[N])", "W: f32[N], s: f32)")
FULL = """
kernel full[M=512, N=80](X: f32[M, N]) -> (C: f32[M, N], D: f32[N]) {
  grid bx = 1
  shared x: f32[M, N], d: f32[N]
  x = X[0, 0]
  d = colmax(x)
  D[0] = d
  C[0, 0] = 1 - x * x
}
"""
FULL_OF_BLOCKS = """
kernel full[M=512, N=80](X: f32[2, M, N]) -> (C: f32[2, M, N], D: f32[2, N]) {
  grid bx = 2
  shared x: f32[M, N], d: f32[N]
  x = X[bx, 0, 0]
  d = colmax(x)
  D[bx, 0] = d
  C[bx, 0, 0] = bx + x
}
"""
NEST = """
kernel nest[M=64, N=128](X: f32[M, N], V: f32[M], W: f32[N]) -> C: {dtype}[M, N] {{
  grid bx = 1
  shared x: f32[M, N], v: f32[M], w: f32[N], c: {dtype}[M, N]
  x = X[0, 0]
  v = V[0]
  w = W[0]
  parallel (i, j) in (M, N) {{ c[i, j] = {value} }}
  C[0, 0] = c
}}
"""
NESTS = {
    "nest of a load": "x[i, j]", "nest of a row": "x[i, j] * v[i]", "nest of a column": "x[i, j] * w[j]",
    "nest of a constant": "7", "nest of rows and a number": "exp(v[i] + 2)",
    "nest of a number and rows": "exp(2 - v[i])",
    "nest of rows by their places": "exp(v[i] * i)", "nest of columns by their places": "exp(w[j] * j)",
    "nest of a function": "exp(x[i, j])", "nest of a choice": "select(x[i, j] > w[j], x[i, j], v[i])",
    "nest of a choice by a constant": "select(x[i, j] > 0.5, x[i, j], v[i])",
    "nest of a choice, constant first": "select(0.5 < x[i, j], x[i, j], v[i])",
    "nest of a mask": "select(x[i, j] > 0.5, x[i, j], 0)",
    "nest of a choice by place": "select(i >= j, x[i, j], 0)",
    "nest of a mask, constant first": "select(x[i, j] == 0.5, 0, x[i, j])",
    "nest of a mask by place, constant first": "select(i >= j, 0, x[i, j])",
    "nest of a mask by whole numbers": "select(f32(i32(x[i, j])) * 0.5 < 1, 0, x[i, j])",
    "nest of a value and its mask by place": "x[i, j] * select(i >= j, x[i, j], 0)",
    "nest of a place": "x[i, j] * (i + 2*j + 3)",
}  # fmt: skip
INDEX = """
kernel index[M=64, N=128](X: f32[2, M, N]) -> C: f32[2, M, N] {{
  grid bx = 2
  shared x: f32[M, N], c: f32[M, N]
  x = X[bx, 0, 0]
  {value}
  C[bx, 0, 0] = c
}}
"""
NESTS_OF_CALL = {
    "nest of a number of the call": "s", "nest of rows and a number of the call": "exp(v[i] + s)",
    "nest of a number of the call and rows": "exp(s - v[i])",
}
INDICES = {
    "nest of an index": "parallel (i, j) in (M, N) { c[i, j] = x[i, j] * (bx*128 + i) }",
    "x + the block": "c = x * 2 + bx",
    "the block + x": "c = bx + x * 2",
}  # fmt: skip
FULL_NESTS = {
    "UB full: a mask": ("select(x[i, j] > 0.5, x[i, j], 0)", 96),
    "UB full: a mask by place": ("select(i >= j, x[i, j], 0)", 80),
    "UB full: a choice by place": ("select(i >= j, x[i, j], exp(x[i, j]))", 48),
}
PRODUCT = """
kernel product[M=128, N=128, K=64](A: f16[M, K], B: f16[K, N], D: f16[N, M]) -> C: {dtype}[M, N] {{
  grid bx = 1
  shared a: f16[M, K], b: f16[K, N], d: f16[N, M], h: f16[M, N]
  fragment c: f32[M, N], e: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  d = D[0, 0]
  c = a @ b
  {then}
}}
"""
PRODUCTS = {
    "relu of a product": ("f32", "C[0, 0] = relu(c)"),
    "relu of a product in f16": ("f16", "C[0, 0] = relu(c)"),
    "max of a product and 0 in f16": ("f16", "h = c\n  C[0, 0] = max(h, 0)"),
    "exp of the relu of a product": ("f32", "c = relu(c)\n  C[0, 0] = exp(c) + c"),
    "exp of a product": ("f32", "C[0, 0] = exp(c)"),
    "exp of a product in f16": ("f16", "h = c\n  C[0, 0] = exp(h)"),
    "product of a relu": ("f32", "h = relu(c)\n  e = h @ d\n  C[0, 0] = e"),
    "product of an exp": ("f32", "h = exp(c)\n  e = h @ d\n  C[0, 0] = e"),
    "product of a sigmoid": ("f32", "h = sigmoid(c)\n  e = h @ d\n  C[0, 0] = e"),
    "sum of products": ("f32", "e = exp(c)\n  C[0, 0] = a @ b + e"),
    "bytes of a product": ("i8", "C[0, 0] = i8(c * 40)"),
    "bytes of the relu of a product": ("i8", "C[0, 0] = i8(relu(c * 40))"),
    "product and its exp": ("f32", "C[0, 0] = c\n  C[0, 0] = exp(c)"),
}  # fmt: skip
UNEVEN = {
    "uneven: exp of a product in f16": ("f16", "h = c\n  C[0, 0] = exp(h)"),
    "uneven: exp of the relu of a product": ("f32", "c = relu(c)\n  C[0, 0] = exp(c)"),
}
DEEP = """
kernel deep[M={m}, N={m}, K={k}](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {{
  grid bx = 1
  shared a: f16[M, K], b: f16[K, N]
  fragment c: f32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  c = a @ b
  C[0, 0] = c
}}
"""
LONG = """
kernel long[M=4096, N=6144, K=512, BM=128, BN=256](A: f16[M, K], B: f16[{shape}]) -> C: f32[M, N] {{
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, K], b: f16[{tile}]
  a = A[bx*BM, 0]
  b = B[{at}]
  C[bx*BM, by*BN] = exp(a @ {b})
}}
"""
LONGS = {
    "exp of long products": {"shape": "K, N", "tile": "K, BN", "at": "0, by*BN", "b": "b"},
    "exp of long products, transposed": {"shape": "N, K", "tile": "BN, K", "at": "by*BN, 0", "b": "b.T"},
}
DEPTHS = {"product of depth 512": (64, 512), "narrow product of depth 1024": (16, 1024)}
SUM = """
kernel sum[M=128, N=256, K=2048, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid bx = 1
  shared   a: f16[M, BK], b: f16[BK, N]
  fragment c: f32[M, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[0, k*BK]
    b = B[k*BK, 0]
    c += a @ b
  }
  C[0, 0] = c
}
"""
SQUARES = """
kernel squares[M=8192, N=256, BM=16](X: f32[M, N]) -> S: f32[N] {
  grid bx = 1
  shared x: f32[BM, N]
  fragment s: f32[N] = 0
  for k in pipelined(ceildiv(M, BM)) {
    x = X[k*BM, 0]
    s = s + colsum(x * x)
  }
  S[0] = s
}
"""
BYTES = """
kernel bytes[M=64, N=128, K=512, BK=256](A: i8[M, K], B: i8[K, N]) -> C: {dtype}[M, N] {{
  grid bx = 1
  shared   a: i8[M, BK], b: i8[BK, N]
  fragment c: i32[M, N] = 0
  for k in pipelined(ceildiv(K, BK)) {{
    a = A[0, k*BK]
    b = B[k*BK, 0]
    c += a @ b
  }}
  C[0, 0] = {value}
}}
"""
KEPT = """
kernel kept[M=64, N=64, K=128](A: {dtype}[M, K], B: {dtype}[N, K], D: i8[N, N]) -> E: i32[M, N] {{
  grid bx = 1
  shared   a: {dtype}[M, K], b: {dtype}[N, K], d: i8[N, N], h: i8[M, N]
  fragment c: {sums}[M, N], e: i32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  d = D[0, 0]
  c = a @ b.T
  h = {value}
  e = h @ d.T
  E[0, 0] = e
}}
"""
BYTES_KEPT = {
    "bytes in L1": ("i8", "i32", "i8(f32(c) * 0.0009765625)"),
    "relu to bytes in L1": ("i8", "i32", "i8(relu(f32(c) * 0.0009765625))"),
    "floats to bytes in L1": ("f16", "f32", "i8(c * 4)"),
    "relu of floats to bytes in L1": ("f16", "f32", "i8(relu(c * 4))"),
}
SCALED = {
    "product of bytes": ("i32", "c"),
    "product of bytes times a number": ("f16", "f32(c) * 0.01"),
    "relu of a product of bytes times a number": ("f16", "relu(f32(c) * 0.01)"),
    "bytes of a product of bytes": ("i8", "i8(f32(c) * 0.0005)"),
    "product of bytes in f32": ("f32", "exp(f32(c) * 0.00001)"),
}
MOVES = {
    "bytes to short": ("i8", "f16", "x"), "long to bytes": ("f32", "i8", "i8(x)"),
    "long to unsigned bytes": ("f32", "u8", "u8(x)"), "x << 3": ("i32", "i32", "x << 3"), "x >> 3": ("i32", "i32", "x >> 3"),
    "with another sign": ("i32", "u32", "u32(x)"),
    "copy": ("f32", "f32", "x"), "short to other short": ("f16", "bf16", "x"), "short to long": ("f16", "f32", "x"),
    "short, and short again": ("f32", "f16", "f32(f16(x * 3))"),
    "tanh in f16": ("f16", "f16", "tanh(x)"), "short sum": ("f16", "f16", "x + x * x"),
    "long to short": ("f32", "f16", "x"),
    "relu to short": ("f32", "f16", "relu(x)"), "relu to long": ("f16", "f32", "relu(f32(x))"),
}  # fmt: skip
MOVE = """
kernel move[M={rows}, N={cols}](X: {source}[M, N]) -> C: {target}[M, N] {{
  grid bx = 1
  shared x: {source}[M, N], c: {target}[M, N]
  x = X[0, 0]
  c = {value}
  C[0, 0] = c
}}
"""
FOUR_BITS = """
kernel numbers[M=32, N=128](A: i4[M, N]) -> C: f16[M, N] {
  grid bx = 1
  shared a: i4[M, N]
  a = A[0, 0]
  C[0, 0] = a * 2
}
"""
FOUR_BITS_IN_ROWS = FOUR_BITS.replace("N=128", "N=96").replace("a: i4[M, N]", "a: i4[M, 128]")
IN_TURNS = """
kernel turns[N=256](X: i8[N], Y: i8[N]) -> C: i8[2*N] {
  grid bx = 1
  shared x: i8[N], y: i8[N], c: i8[2*N]
  x = X[0]
  y = Y[0]
  parallel j in N {
    c[2*j] = x[j]
    c[2*j + 1] = y[j]
  }
  C[0] = c
}
"""
TURNS_CUT_OFF = """
kernel turns[M=20, N=24](X: i8[M, N], Y: i8[M, N]) -> C: i8[M, 2*N] {
  grid bx = 1
  shared x: i8[M, 64], y: i8[M, 64], c: i8[M, 128]
  x = X[0, 0]
  y = Y[0, 0]
  parallel (i, j) in (M, 64) {
    c[i, 2*j] = x[i, j]
    c[i, 2*j + 1] = y[i, j]
  }
  C[0, 0] = c
}
"""
REARRANGED = """
kernel rearranged[N=64](X: f32[N], Y: f32[N]) -> C: f32[256] {{
  grid bx = 1
  shared x: f32[N], y: f32[N], a: f32[128], b: f32[128], c: f32[256]
  x = X[0]
  y = Y[0]
  {}
  C[0] = c
}}
"""
WHOLE = {
    "a sorted list in parts": "a = sort(x)  c[0:128] = a  c[128:256] = a + 1",
    "sorted lists as one": "a = sort(x)  b = sort(y)  c = merge(a, b)",
    "a part of a sorted list": "a = sort(x)  b = sort(y)  c = merge(a, b)  y = a[64:128]  c[0:64] = y",
}
"""What becomes of two vectors."""
PACKED = """
kernel packed[M=64, N=256](X: f32[M, N], Y: f32[M, N]) -> C: u8[M, N // 8] {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N]
  x = X[0, 0]
  y = Y[0, 0]
  C[0, 0] = pack(select(x > y, 1, 0))
}
"""
BY_BITS = """
kernel chosen[M=64, N=256](X: f32[M, N], Y: f32[M, N], B: u8[M, N // 8]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N], b: u8[M, N // 8]
  x = X[0, 0]
  y = Y[0, 0]
  b = B[0, 0]
  C[0, 0] = select(bits(b), x, y)
}
"""
BELOW = """
kernel below[S=1024, D=64, BM=128, BN=128](Q: f16[S, D], K: f16[S, D]) -> L: f32[S] {
  grid bx = ceildiv(S, BM)
  shared q: f16[BM, D], k: f16[BN, D]
  fragment s: f32[BM, BN], l: f32[BM] = 0
  q = Q[bx*BM, 0]
  for j in pipelined(bx + 1) {
    k = K[j*BN, 0]
    parallel (x, y) in (BM, BN) { s[x, y] = select(bx*BM + x >= j*BN + y, 0, -inf) }
    s += q @ k.T
    l = l + rowsum(exp(s))
  }
  L[bx*BM] = l
}
"""
"""The idiom of TileLang's causal attention: a product is added to its mask."""
WIDE = """
kernel wide[M=4096, N=4096, K=1024, BM=128, BN=256, BK=64](A: f16[M, K], W: f16[K, N], R: f16[M, N]) -> Y: f16[M, N] {
  grid (bx, by) = (M // BM, N // BN)
  shared a: f16[BM, BK], w: f16[BK, BN], r: f16[BM, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(K // BK) {
    a = A[bx*BM, k*BK]
    w = W[k*BK, by*BN]
    c += a @ w
  }
  r = R[bx*BM, by*BN]
  Y[bx*BM, by*BN] = 0.5 * c * (1 + tanh(0.7978845608028654 * (c + 0.044715 * c * c * c))) + f32(r)
}
"""
LONG_TEXTS = {n: LONG.format(**parts) for n, parts in LONGS.items()}
LONG_TEXTS |= {"product added to its mask": BELOW, "gelu of a wide product": WIDE}


ON_THE_950 = {
    "product with scales on the 950": """
kernel scaled[M=48, N=40, K=128](A: f8e4m3[M, K], SA: e8m0[M, K // 32], B: f8e5m2[N, K], SB: e8m0[N, K // 32]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f8e4m3[M, K], b: f8e5m2[N, K], sa: e8m0[M, K // 32], sb: e8m0[N, K // 32]
  a = A[0, 0]
  sa = SA[0, 0]
  b = B[0, 0]
  sb = SB[0, 0]
  C[0, 0] = scaled(a, sa) @ scaled(b, sb).T
}
""",
    "products with scales on the 950": """
kernel scaled[M=48, N=40, K=576, BK=64](
    A: f8e4m3[M, K], SA: e8m0[M, K // 32], B: f8e4m3[N, K], SB: e8m0[N, K // 32]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f8e4m3[M, BK], b: f8e4m3[N, BK], sa: e8m0[M, BK // 32], sb: e8m0[N, BK // 32]
  fragment c: f32[M, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[0, k*BK]
    sa = SA[0, k*BK // 32]
    b = B[0, k*BK]
    sb = SB[0, k*BK // 32]
    c += scaled(a, sa) @ scaled(b, sb).T
  }
  C[0, 0] = c
}
""",
}


def chain(step: str, x: str = "x") -> str:
    """A step twelve times over, each with a constant of its own."""
    for c in range(2, 14):
        x = step.format(x=x, c=c)
    return x


def texts() -> dict[str, str]:
    """The small ones."""
    out = {n: ELEMENT.format(e) for n, e in ELEMENTS.items()}
    out |= {n: ELEMENT.replace("M=64, N=128", "M=1, N=64").format(e) for n, e in ROW.items()}
    out |= {f"twelve times {n}": ELEMENT.format(chain(e)) for n, e in CHAINS.items()} | {"UB full: 1 - x * x": FULL}
    out["UB full: bx + x"] = FULL_OF_BLOCKS
    out |= {n: ELEMENT_OF_CALL.format(e) for n, e in ELEMENTS_OF_CALL.items()}
    out["UB full: s - x * x"] = FULL.replace("(X: f32[M, N])", "(X: f32[M, N], s: f32)").replace("1 - x", "s - x")
    out |= {f"twelve times {n}": ELEMENT_OF_CALL.format(chain(e)) for n, e in CHAINS_OF_CALL.items()}
    out |= {n: NEST.format(dtype="f32", value=e) for n, e in NESTS.items()}
    out |= {n: NEST.replace("W: f32[N])", "W: f32[N], s: f32)").format(dtype="f32", value=e) for n, e in NESTS_OF_CALL.items()}
    out |= {n: INDEX.format(value=e) for n, e in INDICES.items()}
    out |= {f"twelve times {n}": NEST.format(dtype="f32", value=chain(e, "x[i, j]")) for n, e in NEST_CHAINS.items()}
    out |= {f"twelve times {n}": INDEX.format(value=f"c = {chain(e)}") for n, e in INDEX_CHAINS.items()}
    in_nest = f"parallel (i, j) in (M, N) {{ c[i, j] = {chain(INDEX_CHAINS['x + bx'], 'x[i, j]')} }}"
    out["twelve times x + bx in a nest"] = INDEX.format(value=in_nest)
    out |= {n: full_nest(e, width) for n, (e, width) in FULL_NESTS.items()}
    out["nest of a cast"] = NEST.format(dtype="f16", value="x[i, j]")
    out |= {n: PRODUCT.format(dtype=d, then=t) for n, (d, t) in PRODUCTS.items()}
    out |= {n: PRODUCT.replace("M=128", "M=126").format(dtype=d, then=t) for n, (d, t) in UNEVEN.items()}
    out |= {n: DEEP.format(m=m, k=k) for n, (m, k) in DEPTHS.items()}
    out |= {"long sum of products": SUM, "long sum of squares": SQUARES}
    out |= {n: BYTES.format(dtype=d, value=v) for n, (d, v) in SCALED.items()}
    out["long sum of products in f32"] = SUM.replace("M=128, N=256, K=2048", "M=64, N=128, K=16384").replace("C: f16", "C: f32")
    out |= {n: KEPT.format(dtype=d, sums=s, value=v) for n, (d, s, v) in BYTES_KEPT.items()}
    out["product of bytes, deep"] = BYTES.replace("K=512", "K=16384").format(dtype="i32", value="c")
    for name, (source, target, value) in MOVES.items():
        out[name] = MOVE.format(rows=64, cols=128, source=source, target=target, value=value)
        out[f"{name}, rows of 24"] = MOVE.format(rows=20, cols=24, source=source, target=target, value=value)
        out[f"{name}, short rows"] = MOVE.format(rows=20, cols=17, source=source, target=target, value=value)
    out |= {n: REARRANGED.format(value) for n, value in WHOLE.items()}
    out |= {"numbers of 4 bits": FOUR_BITS, "short rows of numbers of 4 bits": FOUR_BITS_IN_ROWS}
    out |= {"bytes in turns": IN_TURNS, "bytes in turns, short rows": TURNS_CUT_OFF}
    return out | {"a choice by bits": BY_BITS, "bits of a comparison": PACKED} | TILES | SUMS | TRICKY | ON_THE_950 | windows()


def full_nest(value: str, width: int) -> str:
    """A nest over a tile of 512 rows of so many columns."""
    return NEST.replace("M=64, N=128", f"M=512, N={width}").format(dtype="f32", value=value)
