"""The states between chunks of the gated delta rule: N = U - W S, then S = exp(g_last) S + (k exp(g_last - g)).T N."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[4, 5])
def gated_delta_states(H, L, D, E, C=64, BE=64, dtype="float16"):
    @T.prim_func
    def gated_delta_states(
        K: T.Tensor((H, L, D), dtype),
        W: T.Tensor((H, L, D), dtype),
        U: T.Tensor((H, L, E), dtype),
        G: T.Tensor((H, L), "float32"),
        S: T.Tensor((H, T.ceildiv(L, C), D, E), dtype),
        N: T.Tensor((H, L, E), dtype),
    ):
        with T.Kernel(T.ceildiv(E, BE), H) as (be, h):
            k = T.alloc_shared((C, D), dtype)
            w = T.alloc_shared((C, D), dtype)
            u = T.alloc_shared((C, BE), dtype)
            s = T.alloc_shared((D, BE), dtype)
            new = T.alloc_shared((C, BE), dtype)
            kg = T.alloc_shared((C, D), dtype)
            g = T.alloc_shared((C,), "float32")
            state = T.alloc_fragment((D, BE), "float32")
            T.clear(state)
            for c in T.Pipelined(T.ceildiv(L, C)):
                T.copy(W[h, c * C, 0], w)
                T.copy(U[h, c * C, be * BE], u)
                T.copy(K[h, c * C, 0], k)
                T.copy(G[h, c * C], g, pad_value=0)
                T.copy(state, s)
                T.copy(s, S[h, c, 0, be * BE])
                new[:, :] = T.cast(u, "float32") - w @ s
                T.copy(new, N[h, c * C, be * BE])
                for i, j in T.Parallel(C, D):
                    kg[i, j] = k[i, j] * T.exp(g[C - 1] - g[i])
                for i, j in T.Parallel(D, BE):
                    state[i, j] = state[i, j] * T.exp(g[C - 1])
                state[:, :] = state + kg.T @ new

    return gated_delta_states


def reference(k: np.ndarray, w: np.ndarray, u: np.ndarray, g: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The same in NumPy."""
    k, w, u = (x.astype(np.float64) for x in (k, w, u))
    new, states = np.zeros(u.shape), np.zeros((len(k), -(-k.shape[1] // count), k.shape[2], u.shape[2]))
    for h in range(len(k)):
        state = np.zeros(states.shape[2:])
        for c in range(states.shape[1]):
            rows = (h, slice(c * count, (c + 1) * count))
            last, states[h, c] = g[rows][-1], state
            new[rows] = u[rows] - w[rows] @ state
            state = np.exp(last) * state + (k[rows] * np.exp(last - g[rows])[:, None]).T @ new[rows]
    return states, new


def main() -> None:
    rng = np.random.default_rng(0)
    for H, L, D, E in [(2, 128, 64, 64), (1, 100, 64, 128)]:
        k, w = (rng.uniform(-0.2, 0.2, (H, L, D)).astype(np.float16) for _ in range(2))
        u, g = rng.uniform(-1, 1, (H, L, E)).astype(np.float16), -rng.uniform(0, 2, (H, L)).astype(np.float32)
        found = zip(gated_delta_states(H, L, D, E)(k, w, u, g), reference(k, w, u, g, 64), strict=True)
        error = max(np.abs(x - y).max() for x, y in found)
        print(f"gated_delta_states {H} x {L}, {D} and {E}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
