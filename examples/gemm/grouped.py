"""C[rows of g] = A[rows of g] @ B[g] for groups of different row counts, one tile of rows of one group a block."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def grouped(G, M, N, K, TILES, BM=64, BN=128, BK=64):
    @T.prim_func
    def grouped(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((G, K, N), "float16"),
        group: T.Tensor((TILES,), "int32"),
        row: T.Tensor((TILES,), "int32"),
        rows: T.Tensor((TILES,), "int32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(TILES, T.ceildiv(N, BN)) as (t, by):
            a = T.alloc_shared((BM, BK), "float16")
            b = T.alloc_shared((BK, BN), "float16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[row[t], k * BK], a)
                T.copy(B[group[t], k * BK, by * BN], b)
                T.gemm(a, b, c)
            T.copy(c, C[row[t] : row[t] + rows[t], by * BN])

    return grouped


def tiles_of(sizes: list[int], rows: int) -> list[np.ndarray]:
    """For groups of so many rows, one behind the other, the group, first row and rows of each tile of up to `rows` of them."""
    first = np.cumsum([0, *sizes])
    found = [(g, first[g] + i, min(rows, n - i)) for g, n in enumerate(sizes) for i in range(0, n, rows)]
    return [np.array(column, np.int32) for column in zip(*found, strict=True)]


def reference(a: np.ndarray, b: np.ndarray, sizes: list[int]) -> np.ndarray:
    parts = np.split(a.astype(np.float32), np.cumsum(sizes)[:-1])
    return np.concatenate([x @ y for x, y in zip(parts, b.astype(np.float32), strict=True)])


def main() -> None:
    rng = np.random.default_rng(0)
    N, K = 256, 128
    for sizes in ([63, 77, 1, 100], [16, 300]):
        tiles = tiles_of(sizes, 64)
        a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((sum(sizes), K), (len(sizes), K, N)))
        c = grouped(len(sizes), sum(sizes), N, K, len(tiles[0]))(a, b, *tiles)
        error = np.abs(c.astype(np.float32) - reference(a, b, sizes)).max()
        print(f"grouped {sizes} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
