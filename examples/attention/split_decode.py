"""One query a head against S keys in P parts: each part's attention, and the log-sum-exp of its scores."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-2, -1])
def split_decode(B, H, G, S, D, P, BN=64, dtype="float16", accum_dtype="float32"):
    scale, R = 1 / math.sqrt(D), H // G
    N = T.ceildiv(S, P * BN)  # tiles of a part

    @T.prim_func
    def split_decode(
        Q: T.Tensor((B, H, D), dtype),
        K: T.Tensor((B, G, S, D), dtype),
        V: T.Tensor((B, G, S, D), dtype),
        O: T.Tensor((B, P, H, D), accum_dtype),  # noqa: E741
        L: T.Tensor((B, P, H), accum_dtype),
    ):
        with T.Kernel(P, G, B) as (part, g, b):
            q = T.alloc_shared((R, D), dtype)
            k = T.alloc_shared((BN, D), dtype)
            v = T.alloc_shared((BN, D), dtype)
            p = T.alloc_shared((R, BN), dtype)
            s = T.alloc_fragment((R, BN), accum_dtype)
            o = T.alloc_fragment((R, D), accum_dtype)
            T.clear(o)
            m = T.alloc_fragment((R,), accum_dtype)
            T.fill(m, -1e30)
            l = T.alloc_fragment((R,), accum_dtype)  # noqa: E741
            T.clear(l)
            m_old = T.alloc_fragment((R,), accum_dtype)
            r = T.alloc_fragment((R,), accum_dtype)

            T.copy(Q[b, g * R, 0], q)
            for j in T.Pipelined(part * N, T.min((part + 1) * N, T.ceildiv(S, BN))):
                T.copy(K[b, g, j * BN, 0], k)
                s[:, :] = (q @ k.T) * scale
                T.copy(m, m_old)
                T.reduce_max(s, m, dim=1, clear=False)
                r[:] = T.exp(m_old - m)  # what the earlier tiles have to be multiplied by
                s[:, :] = T.exp(s - m[:, None])
                l[:] = l * r + T.reduce_sum(s, dim=1)
                T.copy(s, p)
                T.copy(V[b, g, j * BN, 0], v)
                o[:, :] = o * r[:, None] + p @ v
            l[:] = T.max(l, 1e-30)  # a part may have no keys
            T.copy(o / l[:, None], O[b, part, g * R, 0])
            T.copy(m + T.log(l), L[b, part, g * R])

    return split_decode


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, parts: int, tile: int) -> tuple[np.ndarray, np.ndarray]:
    """The same in NumPy, float32."""
    shared, size = q.shape[1] // k.shape[1], -(-k.shape[2] // (parts * tile)) * tile
    q, (k, v) = q.astype(np.float32)[:, :, None], (np.repeat(x, shared, 1).astype(np.float32) for x in (k, v))
    o, logs = [], []
    for at in range(0, parts * size, size):
        s = q @ k[:, :, at : at + size].swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        m = s.max(-1, keepdims=True, initial=-1e30)
        e = np.exp(s - m)
        total = np.maximum(e.sum(-1, keepdims=True), 1e-30)
        o.append((e / total @ v[:, :, at : at + size])[:, :, 0])
        logs.append((m + np.log(total))[:, :, 0, 0])
    return np.stack(o, axis=1), np.stack(logs, axis=1)


def main() -> None:
    rng = np.random.default_rng(0)
    for b, h, g, s, d, parts in [(2, 8, 2, 500, 64, 4), (1, 4, 4, 130, 128, 3)]:
        q = rng.standard_normal((b, h, d), np.float32).astype(np.float16)
        k, v = (rng.standard_normal((b, g, s, d), np.float32).astype(np.float16) for _ in range(2))
        found = split_decode(b, h, g, s, d, parts)(q, k, v)
        error = max(np.abs(x - y).max() for x, y in zip(found, attention(q, k, v, parts, 64), strict=True))
        print(f"split_decode {b} x {s}, {h} heads on {g}, {parts} parts: largest error {error:.2e}")


if __name__ == "__main__":
    main()
