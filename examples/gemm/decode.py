"""C = A @ W.T for the few tokens of a decode step."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def decode(M, N, K, BM=32, BN=256, BK=128):
    @T.prim_func
    def decode(A: T.Tensor((M, K), "float16"), W: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "float16")
            w = T.alloc_shared((BN, BK), "float16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(W[by * BN, k * BK], w)
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[bx * BM, by * BN])

    return decode


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.T.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(16, 512, 512), (1, 300, 100)]:
        a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (N, K)))
        error = np.abs(decode(M, N, K)(a, b).astype(np.float32) - reference(a, b)).max()
        print(f"decode {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
