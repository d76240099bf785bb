"""E = A @ B + D: a product with an addend of its own shape."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def matmul_add(M, N, K, BM=128, BN=128, BK=64, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def matmul_add(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        D: T.Tensor((M, N), dtype),
        E: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), dtype)
            b = T.alloc_shared((BK, BN), dtype)
            d = T.alloc_shared((BM, BN), dtype)
            c = T.alloc_fragment((BM, BN), accum_dtype)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(B[k * BK, by * BN], b)
                T.gemm(a, b, c)
            T.copy(D[bx * BM, by * BN], d)
            T.copy(c + T.cast(d, accum_dtype), E[bx * BM, by * BN])

    return matmul_add


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(512, 512, 512), (200, 300, 100)]:
        a, b, d = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (K, N), (M, N)))
        expected = a.astype(np.float32) @ b.astype(np.float32) + d
        error = np.abs(matmul_add(M, N, K)(a, b, d).astype(np.float32) - expected).max()
        print(f"matmul_add {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
