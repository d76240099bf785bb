"""The outputs of the gated delta rule, all chunks at once: O = (q exp(g)) S + (exp(g_i - g_j) q_i . k_j, i >= j) N."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def gated_delta_output(H, L, D, E, C=64, dtype="float16"):
    @T.prim_func
    def gated_delta_output(
        Q: T.Tensor((H, L, D), dtype),
        K: T.Tensor((H, L, D), dtype),
        N: T.Tensor((H, L, E), dtype),
        S: T.Tensor((H, T.ceildiv(L, C), D, E), dtype),
        G: T.Tensor((H, L), "float32"),
        O: T.Tensor((H, L, E), dtype),  # noqa: E741
    ):
        with T.Kernel(T.ceildiv(L, C), H) as (c, h):
            q = T.alloc_shared((C, D), dtype)
            k = T.alloc_shared((C, D), dtype)
            n = T.alloc_shared((C, E), dtype)
            s = T.alloc_shared((D, E), dtype)
            p = T.alloc_shared((C, C), dtype)
            qg = T.alloc_shared((C, D), dtype)
            g = T.alloc_shared((C,), "float32")
            a = T.alloc_fragment((C, C), "float32")
            T.copy(Q[h, c * C, 0], q)
            T.copy(K[h, c * C, 0], k)
            T.copy(N[h, c * C, 0], n)
            T.copy(S[h, c, 0, 0], s)
            T.copy(G[h, c * C], g)
            a[:, :] = q @ k.T
            for i, j in T.Parallel(C, C):
                a[i, j] = T.if_then_else(i >= j, a[i, j] * T.exp(g[i] - g[j]), 0)
            T.copy(a, p)
            qg[:, :] = q * T.exp(g)[:, None]
            T.copy(qg @ s + p @ n, O[h, c * C, 0])

    return gated_delta_output


def reference(q: np.ndarray, k: np.ndarray, n: np.ndarray, s: np.ndarray, g: np.ndarray, count: int) -> np.ndarray:
    """The same in NumPy."""
    q, k, n, s = (x.astype(np.float64) for x in (q, k, n, s))
    out = np.zeros(n.shape)
    for h, c in np.ndindex(s.shape[:2]):
        rows = (h, slice(c * count, (c + 1) * count))
        at = g[rows].astype(np.float64)
        p = np.tril(np.exp(at[:, None] - at) * (q[rows] @ k[rows].T))
        out[rows] = (q[rows] * np.exp(at)[:, None]) @ s[h, c] + p @ n[rows]
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    for H, L, D, E in [(2, 128, 64, 64), (1, 100, 64, 128)]:
        q, k = (rng.uniform(-0.2, 0.2, (H, L, D)).astype(np.float16) for _ in range(2))
        n, s = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((H, L, E), (H, -(-L // 64), D, E)))
        g = -rng.uniform(0, 2, (H, L)).astype(np.float32)
        error = np.abs(gated_delta_output(H, L, D, E)(q, k, n, s, g) - reference(q, k, n, s, g, 64)).max()
        print(f"gated_delta_output {H} x {L}, {D} and {E}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
