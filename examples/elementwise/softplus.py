"""Y = log(1 + exp(x)), written as max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def softplus(M, N, BM=16, BN=512, dtype="float32"):
    @T.prim_func
    def softplus(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            x = T.alloc_shared((BM, BN), dtype)
            T.copy(X[bx * BM, by * BN], x)
            T.copy(T.max(x, 0) + T.log(1 + T.exp(-T.abs(x))), Y[bx * BM, by * BN])

    return softplus


def reference(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 512), (100, 1000), (3, 7)]:
        x = rng.uniform(-100, 100, (M, N)).astype(np.float32)
        error = np.abs(softplus(M, N)(x).astype(np.float32) - reference(x.astype(np.float32))).max()
        print(f"softplus {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
