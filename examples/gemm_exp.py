"""C = A @ B and D = exp(C): the product is kept and used."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-2, -1])
def gemm_exp(M, N, K, BM=64, BN=128, dtype="float16", accum_dtype="float32"):
    @T.prim_func
    def gemm_exp(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), accum_dtype),
        D: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, K), dtype)
            b = T.alloc_shared((K, BN), dtype)
            c = T.alloc_fragment((BM, BN), accum_dtype)
            d = T.alloc_fragment((BM, BN), accum_dtype)
            T.copy(A[bx * BM, 0], a)
            T.copy(B[0, by * BN], b)
            T.gemm(a, b, c, init=True)
            T.exp(c, d)
            T.copy(c, C[bx * BM, by * BN])
            T.copy(d, D[bx * BM, by * BN])

    return gemm_exp


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(256, 256, 128), (100, 200, 72)]:
        a, b = (rng.uniform(-0.5, 0.5, shape).astype(np.float16) for shape in ((M, K), (K, N)))
        product = a.astype(np.float32) @ b.astype(np.float32)
        c, d = gemm_exp(M, N, K)(a, b)
        error = max(np.abs(c - product).max(), np.abs(d / np.exp(product) - 1).max())
        print(f"gemm_exp {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
