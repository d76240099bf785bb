"""C = A.T @ B.T: both operands lie in memory with the inner dimension where the other usually is."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def gemm_transposed(M, N, K, BM=128, BN=256, BK=64, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def gemm_transposed(A: T.Tensor((K, M), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BK, BM), dtype)
            b = T.alloc_shared((BN, BK), dtype)
            c = T.alloc_fragment((BM, BN), accum_dtype)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[k * BK, bx * BM], a)
                T.copy(B[by * BN, k * BK], b)
                T.gemm(a, b, c, transpose_A=True, transpose_B=True)
            T.copy(c, C[bx * BM, by * BN])

    return gemm_transposed


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(512, 512, 512), (200, 300, 100)]:
        a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((K, M), (N, K)))
        expected = a.T.astype(np.float32) @ b.T.astype(np.float32)
        error = np.abs(gemm_transposed(M, N, K)(a, b).astype(np.float32) - expected).max()
        print(f"gemm_transposed {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
