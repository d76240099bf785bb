"""Attention of B sequences that lie one behind the other; sequence b is rows starts[b] to starts[b + 1], at most L of them."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def variable_lengths(B, S, L, H, D, BM=64, BN=64, dtype="float16", accum_dtype="float32"):
    scale = 1 / math.sqrt(D)
    shape = (S, H, D)

    @T.prim_func
    def variable_lengths(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        starts: T.Tensor((B + 1,), "int32"),
        O: T.Tensor(shape, dtype),  # noqa: E741
    ):
        with T.Kernel(T.ceildiv(L, BM), H, B) as (bx, h, b):
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
            first = starts[b]
            end = starts[b + 1]

            T.copy(Q[first + bx * BM : T.min(end, first + bx * BM + BM), h, :], q)
            for j in T.Pipelined(T.ceildiv(T.min(end - first, L), BN)):
                T.copy(K[first + j * BN : T.min(end, first + j * BN + BN), h, :], k)
                s[:, :] = (q @ k.T) * scale
                T.copy(m, m_old)
                T.reduce_max(s, m, dim=1, clear=False)
                r[:] = T.exp(m_old - m)  # what the earlier tiles have to be multiplied by
                s[:, :] = T.exp(s - m[:, None])
                l[:] = l * r + T.reduce_sum(s, dim=1)
                T.copy(s, p)
                T.copy(V[first + j * BN : T.min(end, first + j * BN + BN), h, :], v)
                o[:, :] = o * r[:, None] + p @ v
            T.copy(o / l[:, None], O[first + bx * BM : T.min(end, first + bx * BM + BM), h, :])

    return variable_lengths


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    o = np.zeros(q.shape, np.float32)
    for first, end in zip(starts[:-1], starts[1:], strict=True):
        if first < end:
            x, y, z = (t[first:end].astype(np.float32).swapaxes(0, 1) for t in (q, k, v))
            o[first:end] = (softmax(x @ y.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ z).swapaxes(0, 1)
    return o


def main() -> None:
    rng = np.random.default_rng(0)
    for h, d, *lengths in [(2, 64, 130, 7, 63), (1, 128, 1, 64, 0, 200)]:
        starts = np.cumsum([0, *lengths]).astype(np.int32)
        shape = (int(starts[-1]), h, d)
        q, k, v = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(3))
        o = variable_lengths(len(lengths), shape[0], max(lengths), h, d)(q, k, v, starts)
        error = np.abs(o.astype(np.float32) - attention(q, k, v, starts)).max()
        print(f"variable_lengths {lengths}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
