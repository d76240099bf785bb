"""C = A @ B in bf16, sums in f32."""

import numpy as np
from ml_dtypes import bfloat16

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def gemm_bf16(M, N, K, BM=128, BN=256, BK=64):
    @T.prim_func
    def gemm_bf16(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((K, N), "bfloat16"), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "bfloat16")
            b = T.alloc_shared((BK, BN), "bfloat16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(B[k * BK, by * BN], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * BM, by * BN])

    return gemm_bf16


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(512, 512, 512), (200, 300, 100)]:
        a, b = (rng.uniform(-1, 1, shape).astype(bfloat16) for shape in ((M, K), (K, N)))
        error = np.abs(gemm_bf16(M, N, K)(a, b).astype(np.float32) - reference(a, b)).max()
        print(f"gemm_bf16 {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
