"""Causal attention in which a row of Q sees the W rows of K up to its own, for each batch and head."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def sliding_window(B, H, S, W, D, BM=64, BN=64, dtype="float16", accum_dtype="float32"):
    scale = 1 / math.sqrt(D)
    shape = (B, H, S, D)

    @T.prim_func
    def sliding_window(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        O: T.Tensor(shape, dtype),  # noqa: E741
    ):
        with T.Kernel(T.ceildiv(S, BM), H, B) as (bx, h, b):
            q = T.alloc_shared((BM, D), dtype)
            k = T.alloc_shared((BN, D), dtype)
            v = T.alloc_shared((BN, D), dtype)
            p = T.alloc_shared((BM, BN), dtype)
            s = T.alloc_fragment((BM, BN), accum_dtype)
            o = T.alloc_fragment((BM, D), accum_dtype)
            T.clear(o)
            m = T.alloc_fragment((BM,), accum_dtype)
            T.fill(m, -1e30)
            l = T.alloc_fragment((BM,), accum_dtype)  # noqa: E741
            T.clear(l)
            m_old = T.alloc_fragment((BM,), accum_dtype)
            r = T.alloc_fragment((BM,), accum_dtype)
            first = T.max(0, bx * BM - W + 1) // BN  # the tile in which the window of the first row begins

            T.copy(Q[b, h, bx * BM, 0], q)
            for j in T.Pipelined(first, T.ceildiv(T.min(S, (bx + 1) * BM), BN)):
                T.copy(K[b, h, j * BN, 0], k)
                s[:, :] = (q @ k.T) * scale
                for x, y in T.Parallel(BM, BN):
                    inside = bx * BM + x >= j * BN + y and bx * BM + x < j * BN + y + W
                    s[x, y] = T.if_then_else(inside, s[x, y], -T.infinity(accum_dtype))
                T.copy(m, m_old)
                T.reduce_max(s, m, dim=1, clear=False)
                r[:] = T.exp(m_old - m)  # what the earlier tiles have to be multiplied by
                s[:, :] = T.exp(s - m[:, None])
                l[:] = l * r + T.reduce_sum(s, dim=1)
                T.copy(s, p)
                T.copy(V[b, h, j * BN, 0], v)
                o[:, :] = o * r[:, None] + p @ v
            T.copy(o / l[:, None], O[b, h, bx * BM, 0])

    return sliding_window


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, window: int) -> np.ndarray:
    """The same in NumPy, float32."""
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    i = np.arange(q.shape[-2])
    seen = (i[:, None] >= i) & (i[:, None] < i + window)
    return softmax(np.where(seen, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)) @ v


def main() -> None:
    rng = np.random.default_rng(0)
    for *shape, window in [(1, 2, 256, 64, 100), (1, 1, 200, 80, 32), (2, 1, 64, 128, 64)]:
        q, k, v = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(3))
        b, h, s, d = shape
        o = sliding_window(b, h, s, window, d)(q, k, v)
        error = np.abs(o.astype(np.float32) - attention(q, k, v, window)).max()
        print(f"sliding_window {shape}, {window} keys: largest error {error:.2e}")


if __name__ == "__main__":
    main()
