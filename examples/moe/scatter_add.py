"""G[token[i]] += X[i]: the gradient of an embedding, where tokens may meet in a row."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def scatter_add(R, N, V, BM=16):
    @T.prim_func
    def scatter_add(X: T.Tensor((R, N), "float32"), token: T.Tensor((R,), "int32"), G: T.Tensor((V, N), "float32")):
        with T.Kernel(T.ceildiv(R, BM)) as bx:
            t = T.alloc_shared((BM,), "int32")
            x = T.alloc_shared((BM, N), "float32")
            T.copy(token[bx * BM], t)
            T.copy(X[bx * BM, 0], x)
            for i in range(BM):
                T.atomic_add(G[t[i], :], x[i, :])

    return scatter_add


def reference(x: np.ndarray, token: np.ndarray, rows: int) -> np.ndarray:
    g = np.zeros((rows, x.shape[1]))
    np.add.at(g, token, x)
    return g


def main() -> None:
    rng = np.random.default_rng(0)
    for R, N, V in [(64, 256, 1000), (50, 200, 10)]:
        x, token = rng.uniform(-1, 1, (R, N)).astype(np.float32), rng.integers(0, V, R, np.int32)
        error = np.abs(scatter_add(R, N, V)(x, token) - reference(x, token, V)).max()
        print(f"scatter_add of {R} tokens, {V} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
