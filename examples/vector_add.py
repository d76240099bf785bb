"""C = A + B, one BM x BN tile a block."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def vector_add(M, N, BM=64, BN=128, dtype="float32"):
    @T.prim_func
    def vector_add(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BN), dtype)
            b = T.alloc_shared((BM, BN), dtype)
            T.copy(A[bx * BM, by * BN], a)
            T.copy(B[bx * BM, by * BN], b)
            T.copy(a + b, C[bx * BM, by * BN])

    return vector_add


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 512), (100, 1000), (3, 7)]:
        a, b = (rng.standard_normal((M, N), np.float32) for _ in range(2))
        error = np.abs(vector_add(M, N)(a, b) - (a + b)).max()
        print(f"vector_add {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
