"""C = scale * A @ W.T with numbers of 4 bits in W, two a byte, the lower ones first: they are unpacked once, for all rows."""

import numpy as np

import tile_eg
import tile_eg.language as T

SCALE = 2.0**-10


@tile_eg.jit(out_idx=[-1])
def w4a8(M, N, K, BM=64, BN=32, BK=128):
    @T.prim_func
    def w4a8(A: T.Tensor((M, K), "int8"), W: T.Tensor((N, K // 2), "uint8"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "int8")
            p = T.alloc_shared((BN, BK // 2), "uint8")
            w = T.alloc_shared((BN, BK), "int8")
            c = T.alloc_fragment((BM, BN), "int32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(W[by * BN, k * (BK // 2)], p)
                for i, j in T.Parallel(BN, BK // 2):
                    w[i, 2 * j] = T.cast((T.cast(p[i, j], "int16") << 12) >> 12, "int8")
                    w[i, 2 * j + 1] = T.cast((T.cast(p[i, j], "int16") << 8) >> 12, "int8")
                T.gemm(a, w, c, transpose_B=True)
            T.copy(T.cast(c, "float32") * SCALE, C[bx * BM, by * BN])

    return w4a8


def reference(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    signed = ((np.stack([w & 15, w >> 4], axis=-1).reshape(len(w), -1) ^ 8).astype(np.int32)) - 8
    return a.astype(np.int32) @ signed.T * SCALE


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(64, 128, 256), (20, 100, 192)]:
        a, w = rng.integers(-128, 128, (M, K), np.int8), rng.integers(0, 256, (N, K // 2), np.uint8)
        error = np.abs(w4a8(M, N, K)(a, w).astype(np.float32) - reference(a, w)).max()
        print(f"w4a8 {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
