"""C[i] = A[i] @ B[i] for each matrix of a batch."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def batched(Z, M, N, K, BM=128, BN=256, BK=64):
    @T.prim_func
    def batched(A: T.Tensor((Z, M, K), "float16"), B: T.Tensor((Z, K, N), "float16"), C: T.Tensor((Z, M, N), "float16")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN), Z) as (bx, by, z):
            a = T.alloc_shared((BM, BK), "float16")
            b = T.alloc_shared((BK, BN), "float16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[z, bx * BM, k * BK], a)
                T.copy(B[z, k * BK, by * BN], b)
                T.gemm(a, b, c)
            T.copy(c, C[z, bx * BM, by * BN])

    return batched


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    for Z, M, N, K in [(4, 256, 256, 128), (3, 100, 90, 70)]:
        a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((Z, M, K), (Z, K, N)))
        error = np.abs(batched(Z, M, N, K)(a, b).astype(np.float32) - reference(a, b)).max()
        print(f"batched {Z} x {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
