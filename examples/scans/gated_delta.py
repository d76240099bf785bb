"""The gated delta rule in one launch, a head a block: S = exp(g) (S - beta k k.T S) + beta k v.T and o = S.T q, by chunks."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[5])
def gated_delta(H, L, D, E, C=64, dtype="float16"):
    @T.prim_func
    def gated_delta(
        Q: T.Tensor((H, L, D), dtype),
        K: T.Tensor((H, L, D), dtype),
        V: T.Tensor((H, L, E), dtype),
        G: T.Tensor((H, L), "float32"),
        B: T.Tensor((H, L), "float32"),
        O: T.Tensor((H, L, E), dtype),  # noqa: E741
    ):
        with T.Kernel(H) as h:
            q = T.alloc_shared((C, D), dtype)
            k = T.alloc_shared((C, D), dtype)
            v = T.alloc_shared((C, E), dtype)
            kb = T.alloc_shared((C, D), dtype)
            vb = T.alloc_shared((C, E), dtype)
            t = T.alloc_shared((C, C), dtype)
            w = T.alloc_shared((C, D), dtype)
            new = T.alloc_shared((C, E), dtype)
            p = T.alloc_shared((C, C), dtype)
            qg = T.alloc_shared((C, D), dtype)
            kg = T.alloc_shared((C, D), dtype)
            s = T.alloc_shared((D, E), dtype)
            a = T.alloc_fragment((C, C), "float32")
            u = T.alloc_fragment((C, C), "float32")
            x = T.alloc_fragment((C, C), "float32")
            g = T.alloc_fragment((C,), "float32")
            b = T.alloc_fragment((C,), "float32")
            r = T.alloc_fragment((C,), "float32")
            state = T.alloc_fragment((D, E), "float32")
            T.clear(state)
            for c in T.Pipelined(T.ceildiv(L, C)):
                T.copy(Q[h, c * C, 0], q)
                T.copy(K[h, c * C, 0], k)
                T.copy(V[h, c * C, 0], v)
                T.copy(B[h, c * C], b)
                T.copy(G[h, c * C], g, pad_value=0)
                T.cumsum(g, g)
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
                w[:, :] = t @ kb
                T.copy(state, s)
                new[:, :] = t @ vb - w @ s
                x[:, :] = q @ k.T
                for i, j in T.Parallel(C, C):
                    x[i, j] = T.if_then_else(i >= j, x[i, j] * T.exp(g[i] - g[j]), 0)
                T.copy(x, p)
                qg[:, :] = q * T.exp(g)[:, None]
                T.copy(qg @ s + p @ new, O[h, c * C, 0])
                for i, j in T.Parallel(C, D):
                    kg[i, j] = k[i, j] * T.exp(g[C - 1] - g[i])
                for i, j in T.Parallel(D, E):
                    state[i, j] = state[i, j] * T.exp(g[C - 1])
                state[:, :] = state + kg.T @ new

    return gated_delta


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same in NumPy, token by token."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    out = np.zeros(v.shape)
    for h in range(len(k)):
        state = np.zeros((k.shape[2], v.shape[2]))
        for i in range(k.shape[1]):
            state = np.exp(g[h, i]) * state
            state = state + b[h, i] * np.outer(k[h, i], v[h, i] - k[h, i] @ state)
            out[h, i] = q[h, i] @ state
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    for H, L, D, E in [(2, 128, 64, 64), (1, 128, 64, 64)]:
        q, k = (rng.standard_normal((H, L, D)) for _ in range(2))
        q, k = ((x / np.linalg.norm(x, axis=2, keepdims=True)).astype(np.float16) for x in (q, k))
        v = rng.uniform(-1, 1, (H, L, E)).astype(np.float16)
        g, b = -rng.uniform(0, 0.1, (H, L)).astype(np.float32), rng.uniform(0, 1, (H, L)).astype(np.float32)
        error = np.abs(gated_delta(H, L, D, E)(q, k, v, g, b) - reference(q, k, v, g, b)).max()
        print(f"gated_delta {H} x {L}, {D} and {E}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
