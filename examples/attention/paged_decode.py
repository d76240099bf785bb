"""One query a head against the lengths[b] keys and values in pages of a cache: page j of sequence b is table[b, j]."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def paged_decode(B, H, G, D, N, PAGE, P, dtype="float16", accum_dtype="float32"):
    scale, R = 1 / math.sqrt(D), H // G

    @T.prim_func
    def paged_decode(
        Q: T.Tensor((B, H, D), dtype),
        K: T.Tensor((N, PAGE, G, D), dtype),
        V: T.Tensor((N, PAGE, G, D), dtype),
        table: T.Tensor((B, P), "int32"),
        lengths: T.Tensor((B,), "int32"),
        O: T.Tensor((B, H, D), dtype),  # noqa: E741
    ):
        with T.Kernel(G, B) as (g, b):
            q = T.alloc_shared((R, D), dtype)
            k = T.alloc_shared((PAGE, D), dtype)
            v = T.alloc_shared((PAGE, D), dtype)
            p = T.alloc_shared((R, PAGE), dtype)
            s = T.alloc_fragment((R, PAGE), accum_dtype)
            o = T.alloc_fragment((R, D), accum_dtype)
            T.clear(o)
            m = T.alloc_fragment((R,), accum_dtype)
            T.fill(m, -T.infinity(accum_dtype))
            l = T.alloc_fragment((R,), accum_dtype)  # noqa: E741
            T.clear(l)
            m_old = T.alloc_fragment((R,), accum_dtype)
            r = T.alloc_fragment((R,), accum_dtype)
            length = lengths[b]

            T.copy(Q[b, g * R, 0], q)
            for j in T.Pipelined(T.min(P, T.ceildiv(length, PAGE))):
                T.copy(K[table[b, j], :, g, :], k)
                s[:, :] = (q @ k.T) * scale
                for x, y in T.Parallel(R, PAGE):
                    s[x, y] = T.if_then_else(j * PAGE + y < length, s[x, y], -T.infinity(accum_dtype))
                T.copy(m, m_old)
                T.reduce_max(s, m, dim=1, clear=False)
                r[:] = T.exp(m_old - m)  # what the earlier tiles have to be multiplied by
                s[:, :] = T.exp(s - m[:, None])
                l[:] = l * r + T.reduce_sum(s, dim=1)
                T.copy(s, p)
                T.copy(V[table[b, j], :, g, :], v)
                o[:, :] = o * r[:, None] + p @ v
            T.copy(o / l[:, None], O[b, g * R, 0])

    return paged_decode


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, table: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    (batch, heads, d), groups = q.shape, k.shape[2]
    o = np.zeros(q.shape, np.float32)
    for b in range(batch):
        keys, values = (x[table[b]].reshape(-1, groups, d)[: lengths[b]].astype(np.float32) for x in (k, v))
        for h in range(heads):
            g = h // (heads // groups)
            o[b, h] = softmax(keys[:, g] @ q[b, h].astype(np.float32) / math.sqrt(d)) @ values[:, g]
    return o


def main() -> None:
    rng = np.random.default_rng(0)
    for b, h, g, d, pages, page, most in [(2, 8, 2, 64, 16, 64, 4), (3, 4, 4, 128, 9, 32, 3)]:
        table = rng.permutation(pages)[: b * most].reshape(b, most).astype(np.int32)
        lengths = rng.integers(1, most * page + 1, b).astype(np.int32)
        q = rng.standard_normal((b, h, d), np.float32).astype(np.float16)
        k, v = (rng.standard_normal((pages, page, g, d), np.float32).astype(np.float16) for _ in range(2))
        o = paged_decode(b, h, g, d, pages, page, most)(q, k, v, table, lengths)
        error = np.abs(o.astype(np.float32) - attention(q, k, v, table, lengths)).max()
        print(f"paged_decode of {lengths} tokens, {h} heads on {g}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
