"""Dropout: each element of X is kept with probability 1 - P and scaled, else 0. Which ones follows from a seed and an element's
number alone, by a 32-bit hash, so that the backward pass draws the same ones without a mask."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def dropout(M, N, P=0.1, BM=16, BN=512, dtype="float16"):
    @T.prim_func
    def dropout(X: T.Tensor((M, N), dtype), SEED: T.Tensor((1,), "uint32"), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            x = T.alloc_shared((BM, BN), dtype)
            seed = T.alloc_shared((1,), "uint32")
            h = T.alloc_fragment((BM, BN), "uint32")
            u = T.alloc_fragment((BM, BN), "float32")
            T.copy(X[bx * BM, by * BN], x)
            T.copy(SEED[0], seed)
            for i, j in T.Parallel(BM, BN):
                h[i, j] = T.cast((bx * BM + i) * N + by * BN + j, "uint32")
            h[:, :] = h ^ seed[0]
            h[:, :] = (h ^ (h >> 16)) * 2146121005
            h[:, :] = (h ^ (h >> 15)) * 2221713035
            h[:, :] = h ^ (h >> 16)
            u[:, :] = T.cast(T.cast(h >> 8, "int32"), "float32") * (1 / 16777216)
            T.copy(T.if_then_else(u < P, 0, T.cast(x, "float32") * (1 / (1 - P))), Y[bx * BM, by * BN])

    return dropout


def kept(shape: tuple[int, int], seed: int, P: float) -> np.ndarray:
    """Which elements are kept; the same in NumPy."""
    h = np.arange(shape[0] * shape[1], dtype=np.uint32).reshape(shape) ^ np.uint32(seed)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(2146121005)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(2221713035)
    h = h ^ (h >> np.uint32(16))
    return (h >> np.uint32(8)) / 16777216 >= P


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 1024), (33, 100), (3, 7)]:
        x = rng.uniform(-1, 1, (M, N)).astype(np.float16)
        y = dropout(M, N)(x, np.array([7], np.uint32))
        error = np.abs(y.astype(np.float32) - np.where(kept((M, N), 7, 0.1), x / np.float32(0.9), 0)).max()
        print(f"dropout {M} x {N}: largest error {error:.2e}, {(y != 0).mean():.0%} kept")


if __name__ == "__main__":
    main()
