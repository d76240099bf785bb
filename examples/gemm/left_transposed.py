"""C = A.T @ B: A lies with the inner dimension first, as activations do in the gradient of weights."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def left_transposed(M, N, K, BM=128, BN=256, BK=64):
    @T.prim_func
    def left_transposed(A: T.Tensor((K, M), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BK, BM), "float16")
            b = T.alloc_shared((BK, BN), "float16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[k * BK, bx * BM], a)
                T.copy(B[k * BK, by * BN], b)
                T.gemm(a, b, c, transpose_A=True)
            T.copy(c, C[bx * BM, by * BN])

    return left_transposed


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.T.astype(np.float32) @ b.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(512, 512, 512), (200, 300, 100)]:
        a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((K, M), (K, N)))
        error = np.abs(left_transposed(M, N, K)(a, b).astype(np.float32) - reference(a, b)).max()
        print(f"left_transposed {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
