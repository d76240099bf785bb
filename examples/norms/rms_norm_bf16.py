"""Y = X / sqrt(mean of the squares of a row) * W in bf16, as between the layers of a model; one text for any number of tokens."""

import ml_dtypes
import numpy as np

import tile_eg
import tile_eg.language as T

M = T.symbolic("M")


@tile_eg.jit(out_idx=[-1])
def rms_norm_bf16(M=M, N=4096, BM=8, dtype="bfloat16"):
    @T.prim_func
    def rms_norm_bf16(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, N), dtype)
            w = T.alloc_shared((N,), dtype)
            f = T.alloc_fragment((BM, N), "float32")
            r = T.alloc_fragment((BM,), "float32")
            T.copy(X[bx * BM, 0], x)
            T.copy(W[0], w)
            T.copy(x, f)
            r[:] = T.rsqrt(T.reduce_sum(f * f, dim=1) / N + 1e-5)
            T.copy(f * r[:, None] * w[None, :], Y[bx * BM, 0])

    return rms_norm_bf16


def main() -> None:
    rng = np.random.default_rng(0)
    for N in (512, 300):
        norm = rms_norm_bf16(N=N)
        for M in (64, 9):
            x, w = (rng.uniform(-1, 1, shape).astype(ml_dtypes.bfloat16) for shape in ((M, N), (N,)))
            f = x.astype(np.float32)
            expected = f / np.sqrt((f * f).mean(1, keepdims=True) + 1e-5) * w.astype(np.float32)
            error = np.abs(norm(x, w).astype(np.float32) - expected).max()
            print(f"rms_norm_bf16 {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
