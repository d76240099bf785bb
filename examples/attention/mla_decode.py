"""DeepSeek's latent attention of one query a head: a key is C numbers of KV and R of KR, its value the C numbers of KV again."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def mla_decode(B, H, S, C=512, R=64, BM=32, BN=64, dtype="float16", accum_dtype="float32"):
    scale = 1 / math.sqrt(C + R)

    @T.prim_func
    def mla_decode(
        Q: T.Tensor((B, H, C), dtype),
        QR: T.Tensor((B, H, R), dtype),
        KV: T.Tensor((B, S, C), dtype),
        KR: T.Tensor((B, S, R), dtype),
        O: T.Tensor((B, H, C), dtype),  # noqa: E741
    ):
        with T.Kernel(T.ceildiv(H, BM), B) as (bx, b):
            q = T.alloc_shared((BM, C), dtype)
            qr = T.alloc_shared((BM, R), dtype)
            kv = T.alloc_shared((BN, C), dtype)
            kr = T.alloc_shared((BN, R), dtype)
            p = T.alloc_shared((BM, BN), dtype)
            s = T.alloc_fragment((BM, BN), accum_dtype)
            o = T.alloc_fragment((BM, C), accum_dtype)
            T.clear(o)
            m = T.alloc_fragment((BM,), accum_dtype)
            T.fill(m, -T.infinity(accum_dtype))
            l = T.alloc_fragment((BM,), accum_dtype)  # noqa: E741
            T.clear(l)
            m_old = T.alloc_fragment((BM,), accum_dtype)
            r = T.alloc_fragment((BM,), accum_dtype)

            T.copy(Q[b, bx * BM, 0], q)
            T.copy(QR[b, bx * BM, 0], qr)
            for j in T.Pipelined(T.ceildiv(S, BN)):
                T.copy(KV[b, j * BN, 0], kv)
                T.copy(KR[b, j * BN, 0], kr)
                T.gemm(q, kv, s, transpose_B=True, init=True)
                T.gemm(qr, kr, s, transpose_B=True)
                s[:, :] = s * scale
                T.copy(m, m_old)
                T.reduce_max(s, m, dim=1, clear=False)
                r[:] = T.exp(m_old - m)  # what the earlier tiles have to be multiplied by
                s[:, :] = T.exp(s - m[:, None])
                l[:] = l * r + T.reduce_sum(s, dim=1)
                T.copy(s, p)
                o[:, :] = o * r[:, None] + p @ kv
            T.copy(o / l[:, None], O[b, bx * BM, 0])

    return mla_decode


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: np.ndarray, q_rope: np.ndarray, kv: np.ndarray, k_rope: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    q, kv = np.concatenate([q, q_rope], -1).astype(np.float32), kv.astype(np.float32)
    k = np.concatenate([kv, k_rope.astype(np.float32)], -1)
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ kv


def main() -> None:
    rng = np.random.default_rng(0)
    for b, h, s in [(2, 32, 300), (1, 16, 64)]:
        shapes = [(b, h, 512), (b, h, 64), (b, s, 512), (b, s, 64)]
        arrays = [rng.standard_normal(shape, np.float32).astype(np.float16) for shape in shapes]
        o = mla_decode(b, h, s)(*arrays)
        error = np.abs(o.astype(np.float32) - attention(*arrays)).max()
        print(f"mla_decode {b} x {s}, {h} heads: largest error {error:.2e}")


if __name__ == "__main__":
    main()
