"""Y = the mean of each element and its four neighbours, 0 beyond the border."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def stencil5(M, N, BM=8, BN=128, dtype="float32"):
    @T.prim_func
    def stencil5(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            x = T.alloc_shared((BM + 2, BN + 2), dtype)
            y = T.alloc_fragment((BM, BN), dtype)
            T.copy(X[bx * BM - 1, by * BN - 1], x, pad_value=0)
            for i, j in T.Parallel(BM, BN):
                y[i, j] = (x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2] + x[i + 1, j + 1]) * 0.2
            T.copy(y, Y[bx * BM, by * BN])

    return stencil5


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    p = np.pad(x.astype(np.float64), 1)
    return (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + p[1:-1, 1:-1]) * 0.2


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(128, 256), (37, 200)]:
        x = rng.standard_normal((M, N), np.float32)
        error = np.abs(stencil5(M, N)(x) - reference(x)).max()
        print(f"stencil5 {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
