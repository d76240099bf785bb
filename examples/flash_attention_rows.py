"""Flash attention with its softmax written row by row."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def flash_attention_rows(B, H, S, D, BM=64, BN=64, dtype="float16", accum_dtype="float32"):
    scale = 1 / math.sqrt(D)
    shape = (B, H, S, D)

    @T.prim_func
    def flash_attention_rows(
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
            T.fill(m, -T.infinity(accum_dtype))
            l = T.alloc_fragment((BM,), accum_dtype)  # noqa: E741
            T.clear(l)
            m_old = T.alloc_fragment((BM,), accum_dtype)
            r = T.alloc_fragment((BM,), accum_dtype)

            T.copy(Q[b, h, bx * BM, 0], q)
            for j in T.Pipelined(T.ceildiv(S, BN)):
                T.copy(K[b, h, j * BN, 0], k)
                T.gemm(q, k, s, transpose_B=True, init=True)
                for i in range(BM):
                    T.tile.mul(s[i, :], s[i, :], scale)
                    m_old[i] = m[i]
                    m[i] = T.max(m[i], T.reduce_max(s[i, :]))
                    r[i] = T.exp(m_old[i] - m[i])
                    s[i, :] = T.exp(s[i, :] - m[i])
                    l[i] = l[i] * r[i] + T.reduce_sum(s[i, :])
                    T.tile.mul(o[i, :], o[i, :], r[i])
                for i, n in T.Parallel(BM, BN):
                    p[i, n] = s[i, n]
                T.copy(V[b, h, j * BN, 0], v)
                T.gemm(p, v, o)
            for i in range(BM):
                T.tile.div(o[i, :], o[i, :], l[i])
            T.copy(o, O[b, h, bx * BM, 0])

    return flash_attention_rows


def main() -> None:
    from flash_attention import attention

    rng = np.random.default_rng(0)
    for shape in [(1, 2, 256, 64), (1, 1, 200, 80)]:
        q, k, v = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(3))
        o = flash_attention_rows(*shape)(q, k, v)
        error = np.abs(o.astype(np.float32) - attention(q, k, v)).max()
        print(f"flash_attention_rows {shape}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
