"""Running sums along each row."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def cumsum_rows(M, N, BM=4):
    @T.prim_func
    def cumsum_rows(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, N), "float32")
            y = T.alloc_fragment((BM, N), "float32")
            T.copy(X[bx * BM, 0], x, pad_value=0)
            T.cumsum(x, y, dim=1)
            T.copy(y, Y[bx * BM, 0])

    return cumsum_rows


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    return np.cumsum(x.astype(np.float64), axis=1)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(64, 1024), (7, 96)]:
        x = rng.standard_normal((M, N), np.float32)
        error = np.abs(cumsum_rows(M, N)(x) - reference(x)).max()
        print(f"cumsum_rows {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
