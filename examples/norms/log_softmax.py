"""Y = X - max - log(sum of exp(X - max)) of each row; a block takes BM whole rows, of any length."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def log_softmax(M, N, BM=8, dtype="float16"):
    @T.prim_func
    def log_softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, N), dtype)
            f = T.alloc_fragment((BM, N), "float32")
            m = T.alloc_fragment((BM,), "float32")
            l = T.alloc_fragment((BM,), "float32")  # noqa: E741
            T.copy(X[bx * BM, 0], x)
            T.copy(x, f)
            T.reduce_max(f, m, dim=1)
            f[:, :] = f - m[:, None]
            l[:] = T.log(T.reduce_sum(T.exp(f), dim=1))
            T.copy(f - l[:, None], Y[bx * BM, 0])

    return log_softmax


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(64, 1024), (9, 1000), (1, 7)]:
        x = rng.uniform(-4, 4, (M, N)).astype(np.float16)
        f = x.astype(np.float32)
        expected = f - np.log(np.exp(f).sum(1, keepdims=True))
        print(f"log_softmax {M} x {N}: largest error {np.abs(log_softmax(M, N)(x) - expected).max():.2e}")


if __name__ == "__main__":
    main()
