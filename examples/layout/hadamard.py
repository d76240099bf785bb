"""Y = X @ H / sqrt(N) with Hadamard's matrix H, row by row, in log2(N) steps of sums and differences."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def hadamard(M=64, N=256, BM=16, dtype="float32"):
    @T.prim_func
    def hadamard(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, N), "float32")
            y = T.alloc_fragment((BM, N), "float32")
            T.copy(X[bx * BM, 0], x)
            half = 1
            while half < N:
                for k in range(N // (2 * half)):
                    a = 2 * half * k
                    y[:, a : a + half] = x[:, a : a + half] + x[:, a + half : a + 2 * half]
                    y[:, a + half : a + 2 * half] = x[:, a : a + half] - x[:, a + half : a + 2 * half]
                T.copy(y, x)
                half *= 2
            T.copy(x * (1 / N**0.5), Y[bx * BM, 0])

    return hadamard


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy, by the matrix."""
    n = x.shape[1]
    i = np.arange(n)
    signs = 1 - 2 * (np.array([bin(v).count("1") for v in (i[:, None] & i).ravel()]).reshape(n, n) % 2)
    return x @ signs / np.sqrt(n)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(64, 256), (7, 64)]:
        x = rng.standard_normal((M, N)).astype(np.float32)
        error = np.abs(hadamard(M, N)(x) - reference(x)).max()
        print(f"hadamard {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
