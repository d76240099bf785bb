"""H = R + A @ W and Y = rms_norm(H) * g, for rows that a block keeps."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-2, -1])
def residual_norm(M, N, K, BM=16, BK=64):
    @T.prim_func
    def residual_norm(
        A: T.Tensor((M, K), "float16"),
        W: T.Tensor((K, N), "float16"),
        R: T.Tensor((M, N), "float16"),
        g: T.Tensor((N,), "float16"),
        H: T.Tensor((M, N), "float16"),
        Y: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            a = T.alloc_shared((BM, BK), "float16")
            w = T.alloc_shared((BK, N), "float16")
            r = T.alloc_shared((BM, N), "float16")
            v = T.alloc_shared((N,), "float16")
            c = T.alloc_fragment((BM, N), "float32")
            s = T.alloc_fragment((BM,), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(A[bx * BM, k * BK], a)
                T.copy(W[k * BK, 0], w)
                T.gemm(a, w, c)
            T.copy(R[bx * BM, 0], r)
            T.copy(g[0], v)
            c[:, :] = c + T.cast(r, "float32")
            T.copy(c, H[bx * BM, 0])
            s[:] = T.rsqrt(T.reduce_sum(c * c, dim=1) / N + 1e-5)
            T.copy(c * s[:, None] * T.cast(v, "float32")[None, :], Y[bx * BM, 0])

    return residual_norm


def reference(a: np.ndarray, w: np.ndarray, r: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    h = a.astype(np.float32) @ w.astype(np.float32) + r
    return h, h / np.sqrt((h * h).mean(axis=1, keepdims=True) + 1e-5) * g


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(128, 512, 512), (50, 200, 100)]:
        a, w, r, g = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((M, K), (K, N), (M, N), (N,)))
        found, meant = residual_norm(M, N, K)(a, w, r, g), reference(a, w, r, g)
        error = max(np.abs(x.astype(np.float32) - y).max() for x, y in zip(found, meant, strict=True))
        print(f"residual_norm {M} x {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
