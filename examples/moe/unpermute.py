"""Y[i] = sum over k of w[k, i] * X[place[k, i]]: each token's rows, weighted, back in the order of the tokens."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def unpermute(M, N, R, K, BM=16):
    @T.prim_func
    def unpermute(
        X: T.Tensor((R, N), "float16"),
        place: T.Tensor((K, M), "int32"),
        w: T.Tensor((K, M), "float32"),
        Y: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            p = T.alloc_shared((BM,), "int32")
            v = T.alloc_shared((BM,), "float32")
            x = T.alloc_shared((BM, N), "float16")
            y = T.alloc_fragment((BM, N), "float32")
            T.clear(y)
            for k in T.Pipelined(K):
                T.copy(place[k, bx * BM], p)
                T.copy(w[k, bx * BM], v)
                for i, j in T.Parallel(BM, N):
                    x[i, j] = X[p[i], j]
                y[:, :] = y + T.cast(x, "float32") * v[:, None]
            T.copy(y, Y[bx * BM, 0])

    return unpermute


def reference(x: np.ndarray, place: np.ndarray, w: np.ndarray) -> np.ndarray:
    return (x.astype(np.float32)[place] * w[:, :, None]).sum(axis=0)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(64, 256, 8), (50, 200, 2)]:
        x, w = rng.uniform(-1, 1, (M * K, N)).astype(np.float16), rng.uniform(0, 1, (K, M)).astype(np.float32)
        place = rng.permutation(M * K).astype(np.int32).reshape(K, M)
        error = np.abs(unpermute(M, N, M * K, K)(x, place, w).astype(np.float32) - reference(x, place, w)).max()
        print(f"unpermute {M} x {N}, {K} experts a token: largest error {error:.2e}")


if __name__ == "__main__":
    main()
