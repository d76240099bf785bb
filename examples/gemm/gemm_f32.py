"""C = A @ B in f32."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def gemm_f32(M, N, K, BM=128, BN=256, BK=32):
    @T.prim_func
    def gemm_f32(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "float32")
            b = T.alloc_shared((BK, BN), "float32")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(B[k * BK, by * BN], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * BM, by * BN])

    return gemm_f32


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(512, 512, 512), (200, 300, 100)]:
        a, b = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((M, K), (K, N)))
        error = np.abs(gemm_f32(M, N, K)(a, b) - reference(a, b)).max()
        print(f"gemm_f32 {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
