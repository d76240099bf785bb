"""Y = silu(X @ G.T) * (X @ U.T): the two products of a gated MLP, their results never stored."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def gated_mlp(M, N, K, BM=128, BN=128, BK=64):
    @T.prim_func
    def gated_mlp(
        X: T.Tensor((M, K), "float16"),
        G: T.Tensor((N, K), "float16"),
        U: T.Tensor((N, K), "float16"),
        Y: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            x = T.alloc_shared((BM, BK), "float16")
            wg = T.alloc_shared((BN, BK), "float16")
            wu = T.alloc_shared((BN, BK), "float16")
            g = T.alloc_fragment((BM, BN), "float32")
            T.clear(g)
            u = T.alloc_fragment((BM, BN), "float32")
            T.clear(u)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(X[bx * BM, k * BK], x)
                T.copy(G[by * BN, k * BK], wg)
                T.copy(U[by * BN, k * BK], wu)
                T.gemm(x, wg, g, transpose_B=True)
                T.gemm(x, wu, u, transpose_B=True)
            T.copy(g * T.sigmoid(g) * u, Y[bx * BM, by * BN])

    return gated_mlp


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def reference(x: np.ndarray, g: np.ndarray, u: np.ndarray) -> np.ndarray:
    x = x.astype(np.float32)
    return silu(x @ g.T.astype(np.float32)) * (x @ u.T.astype(np.float32))


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(256, 512, 512), (100, 200, 70)]:
        x, g, u = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (N, K), (N, K)))
        error = np.abs(gated_mlp(M, N, K)(x, g, u).astype(np.float32) - reference(x, g, u)).max()
        print(f"gated_mlp {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
