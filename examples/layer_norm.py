"""Y = (X - mean of a row) / its standard deviation * W + B; a block takes BM whole rows."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def layer_norm(M, N, BM=16, dtype="float16"):
    @T.prim_func
    def layer_norm(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, N), dtype)
            w = T.alloc_shared((N,), dtype)
            b = T.alloc_shared((N,), dtype)
            f = T.alloc_fragment((BM, N), "float32")
            mean = T.alloc_fragment((BM,), "float32")
            r = T.alloc_fragment((BM,), "float32")
            scale = T.alloc_fragment((N,), "float32")
            shift = T.alloc_fragment((N,), "float32")
            T.copy(X[bx * BM, 0], x)
            T.copy(W[0], w)
            T.copy(B[0], b)
            T.copy(w, scale)
            T.copy(b, shift)
            T.copy(x, f)
            mean[:] = T.reduce_sum(f, dim=1) * (1 / N)
            f[:, :] = f - mean[:, None]
            r[:] = T.reduce_sum(f * f, dim=1)
            r[:] = 1 / T.sqrt(r * (1 / N) + 1e-5)
            T.copy(f * r[:, None] * scale[None, :] + shift[None, :], Y[bx * BM, 0])

    return layer_norm


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 1024), (33, 100), (7, 500)]:
        x = rng.uniform(-1, 1, (M, N)).astype(np.float16)
        w, b = (rng.uniform(-1, 1, N).astype(np.float16) for _ in range(2))
        f = x.astype(np.float32)
        f -= f.mean(1, keepdims=True)
        expected = f / np.sqrt((f * f).mean(1, keepdims=True) + 1e-5) * w + b
        error = np.abs(layer_norm(M, N)(x, w, b).astype(np.float32) - expected).max()
        print(f"layer_norm {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
