"""Y = X.T"""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def transpose(M, N, BM=64, BN=64, dtype="float16"):
    @T.prim_func
    def transpose(X: T.Tensor((M, N), dtype), Y: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            x = T.alloc_shared((BM, BN), dtype)
            y = T.alloc_fragment((BN, BM), dtype)
            T.copy(X[bx * BM, by * BN], x, pad_value=0)
            y[:, :] = x.T
            T.copy(y, Y[by * BN, bx * BM])

    return transpose


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    return x.T


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 512), (100, 33)]:
        x = rng.standard_normal((M, N)).astype(np.float16)
        error = np.abs(transpose(M, N)(x) - reference(x)).max()
        print(f"transpose {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
