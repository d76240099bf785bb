"""Y = 1 / (1 + exp(-x)) of halves, computed in f32; one BM x BN tile a block."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def sigmoid(M, N, BM=16, BN=512, dtype="float16"):
    @T.prim_func
    def sigmoid(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            x = T.alloc_shared((BM, BN), dtype)
            f = T.alloc_fragment((BM, BN), "float32")
            T.copy(X[bx * BM, by * BN], x)
            T.copy(x, f)
            T.copy(T.sigmoid(f), Y[bx * BM, by * BN])

    return sigmoid


def reference(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 512), (100, 1000), (3, 7)]:
        x = rng.uniform(-4, 4, (M, N)).astype(np.float16)
        error = np.abs(sigmoid(M, N)(x).astype(np.float32) - reference(x.astype(np.float32))).max()
        print(f"sigmoid {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
