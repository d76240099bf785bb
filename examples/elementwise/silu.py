"""Y = x / (1 + exp(-x)) in f32, one BM x BN tile a block; one text for tensors of any shape."""

import numpy as np

import tile_eg
import tile_eg.language as T

M, N = T.symbolic("M"), T.symbolic("N")


@tile_eg.jit(out_idx=[-1])
def silu(M=M, N=N, BM=16, BN=512, dtype="bfloat16"):
    @T.prim_func
    def silu(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            x = T.alloc_shared((BM, BN), dtype)
            f = T.alloc_fragment((BM, BN), "float32")
            T.copy(X[bx * BM, by * BN], x)
            T.copy(x, f)
            T.copy(f / (1 + T.exp(-f)), Y[bx * BM, by * BN])

    return silu


def reference(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def main() -> None:
    rng = np.random.default_rng(0)
    any_size = silu(dtype="float16")
    for M, N in [(256, 512), (100, 1000), (3, 7)]:
        x = rng.uniform(-4, 4, (M, N)).astype(np.float16)
        error = np.abs(any_size(x).astype(np.float32) - reference(x.astype(np.float32))).max()
        print(f"silu {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
