"""C = A @ B, one BM x BN tile of C a block, BK of the inner dimension at a time."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def gemm(M, N, K, BM=128, BN=256, BK=64, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), dtype)
            b = T.alloc_shared((BK, BN), dtype)
            c = T.alloc_fragment((BM, BN), accum_dtype)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(B[k * BK, by * BN], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * BM, by * BN])

    return gemm


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(512, 512, 512), (300, 500, 200), (64, 48, 80)]:
        a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (K, N)))
        expected = a.astype(np.float32) @ b.astype(np.float32)
        error = np.abs(gemm(M, N, K)(a, b).astype(np.float32) - expected).max()
        print(f"gemm {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
