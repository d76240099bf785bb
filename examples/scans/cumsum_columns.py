"""Running sums down each column, BM rows at a time."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def cumsum_columns(M, N, BM=32, BN=128):
    @T.prim_func
    def cumsum_columns(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, BN)) as by:
            x = T.alloc_shared((BM, BN), "float32")
            y = T.alloc_fragment((BM, BN), "float32")
            total = T.alloc_fragment((BN,), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(M, BM)):
                T.copy(X[k * BM, by * BN], x, pad_value=0)
                T.cumsum(x, y, dim=0)
                y[:, :] = y + total[None, :]
                T.copy(y, Y[k * BM, by * BN])
                for j in T.Parallel(BN):
                    total[j] = y[BM - 1, j]

    return cumsum_columns


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    return np.cumsum(x.astype(np.float64), axis=0)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 512), (50, 200)]:
        x = rng.standard_normal((M, N), np.float32)
        error = np.abs(cumsum_columns(M, N)(x) - reference(x)).max()
        print(f"cumsum_columns {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
