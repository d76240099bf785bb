"""Softmax over each row; a block takes BM whole rows."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def softmax(M, N, BM=32, dtype="float32"):
    @T.prim_func
    def softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, N), dtype)
            m = T.alloc_fragment((BM,), dtype)
            l = T.alloc_fragment((BM,), dtype)  # noqa: E741
            T.copy(X[bx * BM, 0], x)
            T.reduce_max(x, m, dim=1)
            x[:, :] = T.exp(x - m[:, None])
            T.reduce_sum(x, l, dim=1)
            x[:, :] = x / l[:, None]
            T.copy(x, Y[bx * BM, 0])

    return softmax


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(512, 512), (100, 300), (7, 33)]:
        x = rng.standard_normal((M, N), np.float32)
        e = np.exp(x - x.max(1, keepdims=True))
        error = np.abs(softmax(M, N)(x) - e / e.sum(1, keepdims=True)).max()
        print(f"softmax {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
