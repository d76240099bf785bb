"""Y[i] = W[token[i]]: a row of the table for each token."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def embedding(R, N, V, BM=16):
    @T.prim_func
    def embedding(W: T.Tensor((V, N), "float16"), token: T.Tensor((R,), "int32"), Y: T.Tensor((R, N), "float16")):
        with T.Kernel(T.ceildiv(R, BM)) as bx:
            t = T.alloc_shared((BM,), "int32")
            x = T.alloc_shared((BM, N), "float16")
            T.copy(token[bx * BM], t)
            for i, j in T.Parallel(BM, N):
                x[i, j] = W[t[i], j]
            T.copy(x, Y[bx * BM, 0])

    return embedding


def reference(x: np.ndarray, token: np.ndarray) -> np.ndarray:
    return x[token]


def main() -> None:
    rng = np.random.default_rng(0)
    for R, N, V in [(64, 256, 1000), (50, 200, 100)]:
        w, token = rng.uniform(-1, 1, (V, N)).astype(np.float16), rng.integers(0, V, R, np.int32)
        error = np.abs(embedding(R, N, V)(w, token) - reference(w, token)).max()
        print(f"embedding of {R} tokens, {V} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
