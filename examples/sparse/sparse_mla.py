"""Latent attention of each token to K rows of KV that indices pick: a key is C + R numbers, its value the first C of them."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def sparse_mla(B, S, H, N, K, C=512, R=64, BN=32, dtype="float16", accum_dtype="float32"):
    scale, D = 1 / math.sqrt(C + R), C + R

    @T.prim_func
    def sparse_mla(
        Q: T.Tensor((B, S, H, D), dtype),
        KV: T.Tensor((B, N, D), dtype),
        at: T.Tensor((B, S, K), "int32"),
        O: T.Tensor((B, S, H, C), dtype),  # noqa: E741
    ):
        with T.Kernel(S, B) as (x, b):
            q = T.alloc_shared((H, D), dtype)
            kv = T.alloc_shared((BN, D), dtype)
            p = T.alloc_shared((H, BN), dtype)
            s = T.alloc_fragment((H, BN), accum_dtype)
            o = T.alloc_fragment((H, C), accum_dtype)
            T.clear(o)
            m = T.alloc_fragment((H,), accum_dtype)
            T.fill(m, -T.infinity(accum_dtype))
            l = T.alloc_fragment((H,), accum_dtype)  # noqa: E741
            T.clear(l)
            m_old = T.alloc_fragment((H,), accum_dtype)
            r = T.alloc_fragment((H,), accum_dtype)

            T.copy(Q[b, x, 0, 0], q)
            for j in T.Pipelined(T.ceildiv(K, BN)):
                for i, d in T.Parallel(BN, D):
                    kv[i, d] = KV[b, at[b, x, j * BN + i], d]
                s[:, :] = (q @ kv.T) * scale
                T.copy(m, m_old)
                T.reduce_max(s, m, dim=1, clear=False)
                r[:] = T.exp(m_old - m)  # what the earlier tiles have to be multiplied by
                s[:, :] = T.exp(s - m[:, None])
                l[:] = l * r + T.reduce_sum(s, dim=1)
                T.copy(s, p)
                o[:, :] = o * r[:, None] + p @ kv[:, 0:C]
            T.copy(o / l[:, None], O[b, x, 0, 0])

    return sparse_mla


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: np.ndarray, kv: np.ndarray, at: np.ndarray, width: int) -> np.ndarray:
    """The same in NumPy, float32; `width` numbers of a row are its value."""
    rows = np.stack([kv[b, at[b]] for b in range(len(kv))]).astype(np.float32)
    return softmax(q.astype(np.float32) @ rows.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ rows[..., :width]


def main() -> None:
    rng = np.random.default_rng(0)
    for b, s, h, n, k in [(1, 3, 16, 128, 64), (2, 1, 32, 90, 40)]:
        q = rng.standard_normal((b, s, h, 576), np.float32).astype(np.float16)
        kv = rng.standard_normal((b, n, 576), np.float32).astype(np.float16)
        at = rng.integers(0, n, (b, s, k)).astype(np.int32)
        o = sparse_mla(b, s, h, n, k)(q, kv, at)
        error = np.abs(o.astype(np.float32) - attention(q, kv, at, 512)).max()
        print(f"sparse_mla {b} x {s}, {h} heads, {k} of {n} rows: largest error {error:.2e}")


if __name__ == "__main__":
    main()
