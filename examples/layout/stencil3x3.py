"""Y = a weighted sum of each element and its eight neighbours, 0 beyond the border."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def stencil3x3(M, N, BM=8, BN=128, dtype="float32"):
    @T.prim_func
    def stencil3x3(X: T.Tensor((M, N), dtype), W: T.Tensor((9,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            x = T.alloc_shared((BM + 2, BN + 2), dtype)
            w = T.alloc_shared((9,), dtype)
            y = T.alloc_fragment((BM, BN), dtype)
            T.copy(X[bx * BM - 1, by * BN - 1], x, pad_value=0)
            T.copy(W[0], w)
            for i, j in T.Parallel(BM, BN):
                y[i, j] = x[i, j] * w[0] + x[i, j + 1] * w[1] + x[i, j + 2] * w[2]
            for i, j in T.Parallel(BM, BN):
                y[i, j] = y[i, j] + x[i + 1, j] * w[3] + x[i + 1, j + 1] * w[4] + x[i + 1, j + 2] * w[5]
            for i, j in T.Parallel(BM, BN):
                y[i, j] = y[i, j] + x[i + 2, j] * w[6] + x[i + 2, j + 1] * w[7] + x[i + 2, j + 2] * w[8]
            T.copy(y, Y[bx * BM, by * BN])

    return stencil3x3


def reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    p, (m, n) = np.pad(x.astype(np.float64), 1), x.shape
    return sum(w[3 * i + j] * p[i : i + m, j : j + n] for i in range(3) for j in range(3))


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(128, 256), (37, 200)]:
        x, w = rng.standard_normal((M, N), np.float32), rng.standard_normal(9, np.float32)
        error = np.abs(stencil3x3(M, N)(x, w) - reference(x, w)).max()
        print(f"stencil3x3 {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
