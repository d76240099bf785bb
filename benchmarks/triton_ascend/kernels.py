"""A GEMM and a flash attention in Triton, with the block sizes of `examples/`. It is read by Triton, in `compiled.py`."""

import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """C = A @ B of f16 with sums in f32; a program makes 128 x 256 of C, 64 of the inner dimension at a time."""
    BM: tl.constexpr = 128
    BN: tl.constexpr = 256
    BK: tl.constexpr = 64
    program = tl.program_id(0)
    rows = program % (M // BM) * BM + tl.arange(0, BM)
    cols = program // (M // BM) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        right = tl.load(b + (k + depth)[:, None] * N + cols[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + cols[None, :], total.to(tl.float16))


@triton.jit
def attention(q, k, v, o, S: tl.constexpr):
    """O = softmax(Q K^T / 8) V of f16, heads of S x 64; a program has 64 rows of Q and goes once over K and V."""
    D: tl.constexpr = 64
    BM: tl.constexpr = 64
    BN: tl.constexpr = 64
    head = tl.program_id(1) * S * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols, lanes = tl.arange(0, BN), tl.arange(0, D)
    queries = tl.load(q + head + rows[:, None] * D + lanes[None, :])
    most = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    out = tl.zeros((BM, D), tl.float32)
    for start in range(0, S, BN):
        here = head + (start + cols)[:, None] * D + lanes[None, :]
        scores = tl.dot(queries, tl.trans(tl.load(k + here))) * 0.125
        above = tl.maximum(most, tl.max(scores, 1))
        weights, kept = tl.exp(scores - above[:, None]), tl.exp(most - above)
        total = total * kept + tl.sum(weights, 1)
        out = out * kept[:, None] + tl.dot(weights.to(tl.float16), tl.load(v + here))
        most = above
    tl.store(o + head + rows[:, None] * D + lanes[None, :], (out / total[:, None]).to(tl.float16))
