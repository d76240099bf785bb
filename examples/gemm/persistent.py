"""C = A @ B by a fixed number of blocks, each of which takes tiles in turn; which tiles, and in which order, is found."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def persistent(M, N, K, BM=128, BN=256, BK=64, blocks=24):
    @T.prim_func
    def persistent(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(blocks) as cid:
            a = T.alloc_shared((BM, BK), "float16")
            b = T.alloc_shared((BK, BN), "float16")
            c = T.alloc_fragment((BM, BN), "float32")
            for bx, by in T.Persistent([T.ceildiv(M, BM), T.ceildiv(N, BN)], blocks, cid):
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, BK)):
                    T.copy(A[bx * BM, k * BK], a)
                    T.copy(B[k * BK, by * BN], b)
                    T.gemm(a, b, c)
                T.copy(c, C[bx * BM, by * BN])

    return persistent


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(1024, 1024, 512), (300, 500, 100)]:
        a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (K, N)))
        error = np.abs(persistent(M, N, K)(a, b).astype(np.float32) - reference(a, b)).max()
        print(f"persistent {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
