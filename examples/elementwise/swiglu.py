"""Y = silu(gate) * up: the gate is the left half of each row of X, what it lets through the right half."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def swiglu(M, N, BM=8, BN=1024, dtype="float16"):
    @T.prim_func
    def swiglu(X: T.Tensor((M, 2 * N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            gate = T.alloc_shared((BM, BN), dtype)
            up = T.alloc_shared((BM, BN), dtype)
            g = T.alloc_fragment((BM, BN), "float32")
            T.copy(X[bx * BM, by * BN], gate)
            T.copy(X[bx * BM, N + by * BN], up)
            T.copy(gate, g)
            g[:, :] = g * T.sigmoid(g)
            T.copy(g * up, Y[bx * BM, by * BN])

    return swiglu


def reference(x: np.ndarray) -> np.ndarray:
    gate, up = np.split(x, 2, axis=1)
    return gate / (1 + np.exp(-gate)) * up


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 512), (100, 1000), (3, 7)]:
        x = rng.uniform(-4, 4, (M, 2 * N)).astype(np.float16)
        error = np.abs(swiglu(M, N)(x).astype(np.float32) - reference(x.astype(np.float32))).max()
        print(f"swiglu {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
