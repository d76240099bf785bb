"""C = A @ W.T on bytes, with a scale for each token and one for each channel."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def w8a8(M, N, K, BM=128, BN=256, BK=128):
    @T.prim_func
    def w8a8(
        A: T.Tensor((M, K), "int8"),
        W: T.Tensor((N, K), "int8"),
        s: T.Tensor((M,), "float32"),
        t: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "int8")
            w = T.alloc_shared((BN, BK), "int8")
            token = T.alloc_shared((BM,), "float32")
            channel = T.alloc_shared((BN,), "float32")
            c = T.alloc_fragment((BM, BN), "int32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(W[by * BN, k * BK], w)
                T.gemm(a, w, c, transpose_B=True)
            T.copy(s[bx * BM], token)
            T.copy(t[by * BN], channel)
            T.copy(T.cast(c, "float32") * token[:, None] * channel[None, :], C[bx * BM, by * BN])

    return w8a8


def reference(a: np.ndarray, w: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    return (a.astype(np.int32) @ w.T.astype(np.int32)) * s[:, None] * t


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(256, 512, 512), (100, 200, 96)]:
        a, w = (rng.integers(-128, 128, shape, np.int8) for shape in ((M, K), (N, K)))
        s, t = (rng.uniform(0.001, 0.01, n).astype(np.float32) for n in (M, N))
        error = np.abs(w8a8(M, N, K)(a, w, s, t).astype(np.float32) - reference(a, w, s, t)).max()
        print(f"w8a8 {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
