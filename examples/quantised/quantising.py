"""Q = round(A @ W * scale) as bytes: the product leaves with a scale for each channel, as calibration found it."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def quantising(M, N, K, BM=128, BN=256, BK=64):
    @T.prim_func
    def quantising(
        A: T.Tensor((M, K), "float16"),
        W: T.Tensor((K, N), "float16"),
        scale: T.Tensor((N,), "float32"),
        Q: T.Tensor((M, N), "int8"),
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            a = T.alloc_shared((BM, BK), "float16")
            w = T.alloc_shared((BK, BN), "float16")
            s = T.alloc_shared((BN,), "float32")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(W[k * BK, by * BN], w)
                T.gemm(a, w, c)
            T.copy(scale[by * BN], s)
            T.copy(T.cast(c * s[None, :], "int8"), Q[bx * BM, by * BN])

    return quantising


def reference(a: np.ndarray, w: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(a.astype(np.float32) @ w.astype(np.float32) * s), -128, 127)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(256, 512, 512), (100, 200, 96)]:
        a, w = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (K, N)))
        s = rng.uniform(1, 8, N).astype(np.float32)
        error = np.abs(quantising(M, N, K)(a, w, s) - reference(a, w, s)).max()
        print(f"quantising {M} x {N} x {K}: largest error {error:.0f}")


if __name__ == "__main__":
    main()
