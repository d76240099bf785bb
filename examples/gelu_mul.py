"""Y = gelu(A[:, 0]) * A[:, 1], the two halves of each row; gelu as x * sigmoid(1.5957691 * (x + 0.044715 * x^3))."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def gelu_mul(M, N, BM=64, BN=64, dtype="float32"):
    @T.prim_func
    def gelu_mul(A: T.Tensor((M, 2, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            x = T.alloc_shared((BM, BN), dtype)
            z = T.alloc_shared((BM, BN), dtype)
            t = T.alloc_fragment((BM, BN), dtype)
            T.copy(A[bx * BM : bx * BM + BM, 0, by * BN : by * BN + BN], x)
            T.copy(A[bx * BM : bx * BM + BM, 1, by * BN : by * BN + BN], z)
            t[:, :] = x * x * x
            t[:, :] = 1.5957691 * (x + 0.044715 * t)
            T.copy(x / (1 + T.exp(-t)) * z, Y[bx * BM, by * BN])

    return gelu_mul


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 512), (100, 300), (7, 33)]:
        a = rng.standard_normal((M, 2, N), np.float32)
        x, z = a[:, 0], a[:, 1]
        expected = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) * z
        error = np.abs(gelu_mul(M, N)(a) - expected).max()
        print(f"gelu_mul {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
