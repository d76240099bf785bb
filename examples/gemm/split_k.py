"""C = A @ B with the sum in parts: each block adds its part of it to C."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def split_k(M, N, K, S=8, BM=128, BN=256, BK=64):
    @T.prim_func
    def split_k(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN), S) as (bx, by, s):
            a = T.alloc_shared((BM, BK), "float16")
            b = T.alloc_shared((BK, BN), "float16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            trips = T.ceildiv(T.ceildiv(K, S), BK)
            for k in T.Pipelined(trips):
                T.copy(A[bx * BM, (s * trips + k) * BK], a)
                T.copy(B[(s * trips + k) * BK, by * BN], b)
                T.gemm(a, b, c)
            T.atomic_add(C[bx * BM, by * BN], c)

    return split_k


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(128, 256, 2048), (100, 90, 1024)]:
        a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (K, N)))
        error = np.abs(split_k(M, N, K)(a, b) - reference(a, b)).max()
        print(f"split_k {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
