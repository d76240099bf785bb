"""Chunks of the gated delta rule: S = sums of g, T = (1 + (beta exp(S_i - S_j) k_i . k_j, i > j))^-1, U = T beta v and W."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[4, 5, 6])
def gated_delta_chunks(H, L, D, E, C=64, dtype="float16"):
    @T.prim_func
    def gated_delta_chunks(
        K: T.Tensor((H, L, D), dtype),
        V: T.Tensor((H, L, E), dtype),
        G: T.Tensor((H, L), "float32"),
        B: T.Tensor((H, L), "float32"),
        W: T.Tensor((H, L, D), dtype),
        U: T.Tensor((H, L, E), dtype),
        S: T.Tensor((H, L), "float32"),
    ):
        with T.Kernel(T.ceildiv(L, C), H) as (c, h):
            k = T.alloc_shared((C, D), dtype)
            v = T.alloc_shared((C, E), dtype)
            kb = T.alloc_shared((C, D), dtype)
            vb = T.alloc_shared((C, E), dtype)
            t = T.alloc_shared((C, C), dtype)
            a = T.alloc_fragment((C, C), "float32")
            u = T.alloc_fragment((C, C), "float32")
            g = T.alloc_fragment((C,), "float32")
            b = T.alloc_fragment((C,), "float32")
            r = T.alloc_fragment((C,), "float32")
            T.copy(K[h, c * C, 0], k)
            T.copy(V[h, c * C, 0], v)
            T.copy(B[h, c * C], b)
            T.copy(G[h, c * C], g, pad_value=0)
            T.cumsum(g, g)
            T.copy(g, S[h, c * C])
            a[:, :] = k @ k.T
            for i, j in T.Parallel(C, C):
                a[i, j] = T.if_then_else(i > j, a[i, j] * T.exp(g[i] - g[j]) * b[i], 0)
            for i, j in T.Parallel(C, C):
                u[i, j] = T.if_then_else(i == j, 1, 0)
            for i in T.serial(1, C):  # (1 + a) u = 1, row by row
                r[:] = a[i, :]
                u[i, :] = u[i, :] - T.reduce_sum(u * r[:, None], dim=0)
            T.copy(u, t)
            kb[:, :] = k * (b * T.exp(g))[:, None]
            vb[:, :] = v * b[:, None]
            T.copy(t @ kb, W[h, c * C, 0])
            T.copy(t @ vb, U[h, c * C, 0])

    return gated_delta_chunks


def reference(k: np.ndarray, v: np.ndarray, g: np.ndarray, b: np.ndarray, count: int) -> tuple[np.ndarray, ...]:
    """The same in NumPy."""
    k, v, sums = k.astype(np.float64), v.astype(np.float64), np.zeros(g.shape)
    w, u = np.zeros(k.shape), np.zeros(v.shape)
    for h, at in np.ndindex(len(k), -(-k.shape[1] // count)):
        rows = (h, slice(at * count, (at + 1) * count))
        s = sums[rows] = np.cumsum(g[rows])
        a = np.tril(b[rows][:, None] * np.exp(s[:, None] - s) * (k[rows] @ k[rows].T), -1)
        t = np.linalg.inv(np.eye(len(s)) + a)
        w[rows], u[rows] = t @ (k[rows] * (b[rows] * np.exp(s))[:, None]), t @ (v[rows] * b[rows][:, None])
    return w, u, sums


def main() -> None:
    rng = np.random.default_rng(0)
    for H, L, D, E in [(2, 128, 64, 64), (1, 100, 64, 128)]:
        k, v = rng.standard_normal((H, L, D)), rng.standard_normal((H, L, E)).astype(np.float16)
        k = (k / np.linalg.norm(k, axis=2, keepdims=True)).astype(np.float16)
        g, b = -rng.uniform(0, 0.1, (H, L)).astype(np.float32), rng.uniform(0, 1, (H, L)).astype(np.float32)
        found = zip(gated_delta_chunks(H, L, D, E)(k, v, g, b), reference(k, v, g, b, 64), strict=True)
        error = max(np.abs(x - y).max() for x, y in found)
        print(f"gated_delta_chunks {H} x {L}, {D} and {E}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
