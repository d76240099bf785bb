"""Y = gelu(A @ W + bias), by the tanh form of GELU."""

import numpy as np

import tile_eg
import tile_eg.language as T

SCALE = 0.7978845608028654  # sqrt(2 / pi)


@tile_eg.jit(out_idx=[-1])
def bias_gelu(M, N, K, BM=128, BN=128, BK=64):
    @T.prim_func
    def bias_gelu(
        A: T.Tensor((M, K), "float16"),
        W: T.Tensor((K, N), "float16"),
        bias: T.Tensor((N,), "float16"),
        Y: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "float16")
            w = T.alloc_shared((BK, BN), "float16")
            b = T.alloc_shared((BN,), "float16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(W[k * BK, by * BN], w)
                T.gemm(a, w, c)
            T.copy(bias[by * BN], b)
            c[:, :] = c + T.cast(b, "float32")[None, :]
            T.copy(0.5 * c * (1 + T.tanh(SCALE * (c + 0.044715 * c * c * c))), Y[bx * BM, by * BN])

    return bias_gelu


def reference(a: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = a.astype(np.float32) @ w.astype(np.float32) + b
    return 0.5 * c * (1 + np.tanh(SCALE * (c + 0.044715 * c**3)))


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(512, 512, 512), (200, 300, 100)]:
        a, w, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (K, N), (N,)))
        error = np.abs(bias_gelu(M, N, K)(a, w, b).astype(np.float32) - reference(a, w, b)).max()
        print(f"bias_gelu {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
