"""C = A @ B.T of MXFP4, on the 950: each 32 floats of 4 bits along K share a scale, a power of two."""

import ml_dtypes
import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1], chip="950")
def mxfp4(M, N, K, BM=256, BN=256, BK=512):
    @T.prim_func
    def mxfp4(
        A: T.Tensor((M, K), "float4_e2m1"),
        SA: T.Tensor((M, K // 32), "float8_e8m0"),
        B: T.Tensor((N, K), "float4_e2m1"),
        SB: T.Tensor((N, K // 32), "float8_e8m0"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "float4_e2m1")
            b = T.alloc_shared((BN, BK), "float4_e2m1")
            sa = T.alloc_shared((BM, BK // 32), "float8_e8m0")
            sb = T.alloc_shared((BN, BK // 32), "float8_e8m0")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(SA[bx * BM, k * BK // 32], sa)
                T.copy(B[by * BN, k * BK], b)
                T.copy(SB[by * BN, k * BK // 32], sb)
                T.gemm_mx(a, sa, b, sb, c, transpose_B=True)
            T.copy(c, C[bx * BM, by * BN])

    return mxfp4


def quantised(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Floats in blocks of 32, each divided by the power of two that brings its largest one to 6 or less, and these powers."""
    blocks = x.reshape(len(x), -1, 32)
    scales = np.exp2(np.floor(np.log2(np.abs(blocks).max(axis=-1))) - 2)
    small = (blocks / scales[..., None]).reshape(x.shape)
    return np.clip(small, -6, 6).astype(ml_dtypes.float4_e2m1fn), scales.astype(ml_dtypes.float8_e8m0fnu)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(256, 512, 512), (100, 200, 192)]:
        a, b = rng.standard_normal((M, K)), rng.standard_normal((N, K))
        c = mxfp4(M, N, K)(*quantised(a), *quantised(b)).astype(np.float32)
        error = np.linalg.norm(c - a @ b.T) / np.linalg.norm(a @ b.T)
        print(f"mxfp4 {M} x {N} x {K}: {100 * error:.1f} % off the product of the numbers before they were rounded to 4 bits")


if __name__ == "__main__":
    main()
