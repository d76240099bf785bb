"""Softmax over rows of any length, BN columns at a time: one pass for the maximum and the sum of a row, one for the result."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def online_softmax(M, N, BM=32, BN=256, dtype="float32"):
    @T.prim_func
    def online_softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, BN), dtype)
            m = T.alloc_fragment((BM,), dtype)
            T.fill(m, -T.infinity(dtype))
            l = T.alloc_fragment((BM,), dtype)  # noqa: E741
            T.clear(l)
            m_old = T.alloc_fragment((BM,), dtype)
            for j in T.Pipelined(T.ceildiv(N, BN)):
                T.copy(X[bx * BM, j * BN], x)
                T.copy(m, m_old)
                T.reduce_max(x, m, dim=1, clear=False)
                x[:, :] = T.exp(x - m[:, None])
                l[:] = l * T.exp(m_old - m) + T.reduce_sum(x, dim=1)
            for j in T.Pipelined(T.ceildiv(N, BN)):
                T.copy(X[bx * BM, j * BN], x)
                x[:, :] = T.exp(x - m[:, None])
                T.copy(x / l[:, None], Y[bx * BM, j * BN])

    return online_softmax


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 2048), (70, 500), (7, 33)]:
        x = rng.standard_normal((M, N), np.float32)
        e = np.exp(x - x.max(1, keepdims=True))
        error = np.abs(online_softmax(M, N)(x) - e / e.sum(1, keepdims=True)).max()
        print(f"online_softmax {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
