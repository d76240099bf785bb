"""C = scale * A @ W.T on bytes: products add up in int32, and the scale is applied on the way out of L0C."""

import numpy as np

import tile_eg
import tile_eg.language as T

SCALE = 2.0**-16


@tile_eg.jit(out_idx=[-1])
def gemm_int8(M, N, K, BM=128, BN=256, BK=128):
    @T.prim_func
    def gemm_int8(A: T.Tensor((M, K), "int8"), W: T.Tensor((N, K), "int8"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "int8")
            w = T.alloc_shared((BN, BK), "int8")
            c = T.alloc_fragment((BM, BN), "int32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(W[by * BN, k * BK], w)
                T.gemm(a, w, c, transpose_B=True)
            T.copy(T.cast(c, "float32") * SCALE, C[bx * BM, by * BN])

    return gemm_int8


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(512, 512, 1024), (200, 300, 100)]:
        a, w = (rng.integers(-128, 128, shape, np.int8) for shape in ((M, K), (N, K)))
        expected = a.astype(np.int32) @ w.T.astype(np.int32) * SCALE
        error = np.abs(gemm_int8(M, N, K)(a, w) - expected).max()
        print(f"gemm_int8 {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
