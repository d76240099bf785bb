"""C = A @ W.T, one text for every number of rows: weights are those of a layer, tokens come as they come."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def open_sizes(N, K, BM=128, BN=256, BK=64):
    M = T.symbolic("M")

    @T.prim_func
    def open_sizes(A: T.Tensor((M, K), "float16"), W: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "float16")
            w = T.alloc_shared((BN, BK), "float16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(W[by * BN, k * BK], w)
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[bx * BM, by * BN])

    return open_sizes


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.T.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    N, K = 512, 512
    layer = open_sizes(N, K)
    for M in (512, 100, 1):
        a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (N, K)))
        error = np.abs(layer(a, b).astype(np.float32) - reference(a, b)).max()
        print(f"open_sizes {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
