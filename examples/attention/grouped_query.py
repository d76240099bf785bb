"""Causal attention of H heads of queries that share G heads of keys and values, with the log-sum-exp of each row of scores."""

import math

import ml_dtypes
import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-2, -1])
def grouped_query(B, S, H, G, D, BM=64, BN=64, dtype="bfloat16", accum_dtype="float32"):
    scale = 1 / math.sqrt(D)

    @T.prim_func
    def grouped_query(
        Q: T.Tensor((B, S, H, D), dtype),
        K: T.Tensor((B, S, G, D), dtype),
        V: T.Tensor((B, S, G, D), dtype),
        O: T.Tensor((B, S, H, D), dtype),  # noqa: E741
        L: T.Tensor((B, H, S), accum_dtype),
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
            T.fill(m, -T.infinity(accum_dtype))
            l = T.alloc_fragment((BM,), accum_dtype)  # noqa: E741
            T.clear(l)
            m_old = T.alloc_fragment((BM,), accum_dtype)
            r = T.alloc_fragment((BM,), accum_dtype)
            g = h // (H // G)

            T.copy(Q[b, bx * BM : bx * BM + BM, h, :], q)
            for j in T.Pipelined(T.ceildiv(T.min(S, (bx + 1) * BM), BN)):
                T.copy(K[b, j * BN : j * BN + BN, g, :], k)
                s[:, :] = (q @ k.T) * scale
                for x, y in T.Parallel(BM, BN):
                    s[x, y] = T.if_then_else(bx * BM + x >= j * BN + y, s[x, y], -T.infinity(accum_dtype))
                T.copy(m, m_old)
                T.reduce_max(s, m, dim=1, clear=False)
                r[:] = T.exp(m_old - m)  # what the earlier tiles have to be multiplied by
                s[:, :] = T.exp(s - m[:, None])
                l[:] = l * r + T.reduce_sum(s, dim=1)
                T.copy(s, p)
                T.copy(V[b, j * BN : j * BN + BN, g, :], v)
                o[:, :] = o * r[:, None] + p @ v
            T.copy(o / l[:, None], O[b, bx * BM : bx * BM + BM, h, :])
            T.copy(m + T.log(l), L[b, h, bx * BM])

    return grouped_query


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    shared = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, shared, axis=2) for x in (k, v))
    q, k, v = (x.astype(np.float32).swapaxes(1, 2) for x in (q, k, v))
    s = np.where(np.tri(q.shape[-2], dtype=bool), q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    return (softmax(s) @ v).swapaxes(1, 2)


def main() -> None:
    rng = np.random.default_rng(0)
    for b, s, h, g, d in [(1, 200, 4, 2, 64), (2, 128, 2, 1, 128)]:
        shapes = [(b, s, h, d), (b, s, g, d), (b, s, g, d)]
        q, k, v = (rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16) for shape in shapes)
        o, _ = grouped_query(b, s, h, g, d)(q, k, v)
        error = np.abs(np.asarray(o).astype(np.float32) - attention(q, k, v)).max()
        print(f"grouped_query {b} x {s}, {h} heads on {g}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
