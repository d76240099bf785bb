"""Y[i] = X[token[i]]: the rows of tokens, gathered in the order of their experts."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def permute(M, N, R, BM=32):
    @T.prim_func
    def permute(X: T.Tensor((M, N), "float16"), token: T.Tensor((R,), "int32"), Y: T.Tensor((R, N), "float16")):
        with T.Kernel(T.ceildiv(R, BM)) as bx:
            t = T.alloc_shared((BM,), "int32")
            x = T.alloc_shared((BM, N), "float16")
            T.copy(token[bx * BM], t)
            for i, j in T.Parallel(BM, N):
                x[i, j] = X[t[i], j]
            T.copy(x, Y[bx * BM, 0])

    return permute


def reference(x: np.ndarray, token: np.ndarray) -> np.ndarray:
    return x[token]


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(64, 256, 2), (50, 200, 3)]:
        x, token = rng.uniform(-1, 1, (M, N)).astype(np.float16), rng.permutation(np.repeat(np.arange(M, dtype=np.int32), K))
        error = np.abs(permute(M, N, len(token))(x, token) - reference(x, token)).max()
        print(f"permute {M} x {N}, {K} experts a token: largest error {error:.2e}")


if __name__ == "__main__":
    main()
