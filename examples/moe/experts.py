"""Y[rows of e] = silu(X @ G[e].T) * (X @ U[e].T) for the rows of each expert, one tile of rows of one expert a block."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def experts(E, M, N, K, TILES, BM=64, BN=128, BK=64):
    @T.prim_func
    def experts(
        X: T.Tensor((M, K), "float16"),
        G: T.Tensor((E, N, K), "float16"),
        U: T.Tensor((E, N, K), "float16"),
        expert: T.Tensor((TILES,), "int32"),
        row: T.Tensor((TILES,), "int32"),
        rows: T.Tensor((TILES,), "int32"),
        Y: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(TILES, T.ceildiv(N, BN)) as (t, by):
            x = T.alloc_shared((BM, BK), "float16")
            wg = T.alloc_shared((BN, BK), "float16")
            wu = T.alloc_shared((BN, BK), "float16")
            g = T.alloc_fragment((BM, BN), "float32")
            T.clear(g)
            u = T.alloc_fragment((BM, BN), "float32")
            T.clear(u)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(X[row[t], k * BK], x)
                T.copy(G[expert[t], by * BN, k * BK], wg)
                T.copy(U[expert[t], by * BN, k * BK], wu)
                T.gemm(x, wg, g, transpose_B=True)
                T.gemm(x, wu, u, transpose_B=True)
            T.copy(g * T.sigmoid(g) * u, Y[row[t] : row[t] + rows[t], by * BN])

    return experts


def tiles_of(sizes: list[int], rows: int) -> list[np.ndarray]:
    """For groups of so many rows, one behind the other, the group, first row and rows of each tile of up to `rows` of them."""
    first = np.cumsum([0, *sizes])
    found = [(g, first[g] + i, min(rows, n - i)) for g, n in enumerate(sizes) for i in range(0, n, rows)]
    return [np.array(column, np.int32) for column in zip(*found, strict=True)]


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def reference(x: np.ndarray, g: np.ndarray, u: np.ndarray, sizes: list[int]) -> np.ndarray:
    parts = np.split(x.astype(np.float32), np.cumsum(sizes)[:-1])
    weights = zip(parts, g.astype(np.float32), u.astype(np.float32), strict=True)
    return np.concatenate([silu(a @ b.T) * (a @ c.T) for a, b, c in weights])


def main() -> None:
    rng = np.random.default_rng(0)
    N, K = 128, 128
    for sizes in ([63, 77, 1, 100], [16, 300]):
        tiles = tiles_of(sizes, 64)
        shapes = (sum(sizes), K), (len(sizes), N, K), (len(sizes), N, K)
        x, g, u = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes)
        y = experts(len(sizes), sum(sizes), N, K, len(tiles[0]))(x, g, u, *tiles)
        error = np.abs(y.astype(np.float32) - reference(x, g, u, sizes)).max()
        print(f"experts {sizes} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
