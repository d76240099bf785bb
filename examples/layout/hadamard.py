"""Y = X @ H / sqrt(N) with Hadamard's matrix H: each step stores the sums of neighbours in front of their differences."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def hadamard(M, N, STEPS, BM=16, dtype="float32"):
    @T.prim_func
    def hadamard(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_fragment((BM, N), dtype)
            y = T.alloc_fragment((BM, N), dtype)
            T.copy(X[bx * BM, 0], x, pad_value=0)
            for s in T.serial(STEPS):  # noqa: B007 - N is 2 to the power of STEPS
                for i, j in T.Parallel(BM, N // 2):
                    y[i, j] = x[i, 2 * j] + x[i, 2 * j + 1]
                for i, j in T.Parallel(BM, N // 2):
                    y[i, j + N // 2] = x[i, 2 * j] - x[i, 2 * j + 1]
                T.copy(y, x)
            T.copy(x * (1 / N**0.5), Y[bx * BM, 0])

    return hadamard


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy, by the matrix."""
    h = np.ones((1, 1))
    while len(h) < x.shape[1]:
        h = np.block([[h, h], [h, -h]])
    return x @ h / np.sqrt(x.shape[1])


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, STEPS in [(64, 256, 8), (7, 64, 6)]:
        x = rng.standard_normal((M, N), np.float32)
        error = np.abs(hadamard(M, N, STEPS)(x) - reference(x)).max()
        print(f"hadamard {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
