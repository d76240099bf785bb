"""Queries, keys and values of all heads in one product, with RoPE (halves) on queries and keys as they leave it."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def qkv_rope(S, K, H, HKV, D, BM=128, BK=64, dtype="float16"):
    heads, half, table = H + 2 * HKV, D // 2, (S, D // 2)

    @T.prim_func
    def qkv_rope(
        X: T.Tensor((S, K), dtype),
        W: T.Tensor((K, heads * D), dtype),
        COS: T.Tensor(table, "float32"),
        SIN: T.Tensor(table, "float32"),
        Y: T.Tensor((S, heads * D), dtype),
    ):
        with T.Kernel(T.ceildiv(S, BM), heads) as (bm, h):
            x = T.alloc_shared((BM, BK), dtype)
            v = T.alloc_shared((BK, half), dtype)
            w = T.alloc_shared((BK, half), dtype)
            c = T.alloc_shared((BM, half), "float32")
            s = T.alloc_shared((BM, half), "float32")
            a = T.alloc_fragment((BM, half), "float32")
            T.clear(a)
            b = T.alloc_fragment((BM, half), "float32")
            T.clear(b)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(X[bm * BM, k * BK], x)
                T.copy(W[k * BK, h * D], v)
                T.copy(W[k * BK, h * D + half], w)
                T.gemm(x, v, a)
                T.gemm(x, w, b)
            T.copy(COS[bm * BM, 0], c)
            T.copy(SIN[bm * BM, 0], s)
            for i, j in T.Parallel(BM, half):
                Y[bm * BM + i, h * D + j] = T.if_then_else(h < H + HKV, a[i, j] * c[i, j] - b[i, j] * s[i, j], a[i, j])
                Y[bm * BM + i, h * D + half + j] = T.if_then_else(h < H + HKV, b[i, j] * c[i, j] + a[i, j] * s[i, j], b[i, j])

    return qkv_rope


def reference(x: np.ndarray, w: np.ndarray, c: np.ndarray, s: np.ndarray, turned: int) -> np.ndarray:
    """The same in NumPy, float32; the first `turned` heads are queries and keys."""
    y = (x.astype(np.float32) @ w.astype(np.float32)).reshape(len(x), -1, 2 * c.shape[1])
    a, b = np.split(y[:, :turned], 2, axis=-1)
    c, s = c[:, None], s[:, None]
    y[:, :turned] = np.concatenate([a * c - b * s, b * c + a * s], axis=-1)
    return y.reshape(len(x), -1)


def main() -> None:
    rng = np.random.default_rng(0)
    for S, K, H, HKV, D in [(128, 128, 2, 1, 128), (70, 100, 2, 1, 64)]:
        x, w = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((S, K), (K, (H + 2 * HKV) * D)))
        angle = np.arange(S)[:, None] / 10000 ** (np.arange(D // 2) * 2 / D)
        c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        y = qkv_rope(S, K, H, HKV, D)(x, w, c, s).astype(np.float32)
        print(f"qkv_rope {S} x {K}: largest error {np.abs(y - reference(x, w, c, s, H + HKV)).max():.2e}")


if __name__ == "__main__":
    main()
