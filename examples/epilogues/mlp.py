"""Y = (silu(X @ G.T) * (X @ U.T)) @ D.T in one launch: a block keeps a part of the hidden layer and adds its share to Y."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def mlp(M, N, H, BM=32, BH=64, BN=128, BK=64):
    @T.prim_func
    def mlp(
        X: T.Tensor((M, N), "float16"),
        G: T.Tensor((H, N), "float16"),
        U: T.Tensor((H, N), "float16"),
        D: T.Tensor((N, H), "float16"),
        Y: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(H, BH)) as (bx, by):
            x = T.alloc_shared((BM, BK), "float16")
            wg = T.alloc_shared((BH, BK), "float16")
            wu = T.alloc_shared((BH, BK), "float16")
            h = T.alloc_shared((BM, BH), "float16")
            wd = T.alloc_shared((BN, BH), "float16")
            g = T.alloc_fragment((BM, BH), "float32")
            T.clear(g)
            u = T.alloc_fragment((BM, BH), "float32")
            T.clear(u)
            y = T.alloc_fragment((BM, BN), "float32")
            for k in T.Pipelined(T.ceildiv(N, BK)):
                T.copy(X[bx * BM, k * BK], x)
                T.copy(G[by * BH, k * BK], wg)
                T.copy(U[by * BH, k * BK], wu)
                T.gemm(x, wg, g, transpose_B=True)
                T.gemm(x, wu, u, transpose_B=True)
            T.copy(g * T.sigmoid(g) * u, h)
            for n in T.Pipelined(T.ceildiv(N, BN)):
                T.copy(D[n * BN, by * BH], wd)
                T.gemm(h, wd, y, transpose_B=True, init=True)
                T.atomic_add(Y[bx * BM, n * BN], y)

    return mlp


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def reference(x: np.ndarray, g: np.ndarray, u: np.ndarray, d: np.ndarray) -> np.ndarray:
    x, g, u, d = (a.astype(np.float32) for a in (x, g, u, d))
    return (silu(x @ g.T) * (x @ u.T)) @ d.T


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, H in [(64, 256, 512), (20, 200, 100)]:
        x, g, u, d = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, N), (H, N), (H, N), (N, H)))
        error = np.abs(mlp(M, N, H)(x, g, u, d) - reference(x, g, u, d)).max()
        print(f"mlp {M} x {N} x {H}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
