"""Causal linear attention, O[t] = sum over s <= t of (q[t] . k[s]) v[s], by chunks of C with a state of D x E between them."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def linear_attention(H, S, D, E, C=64, dtype="float16"):
    @T.prim_func
    def linear_attention(
        Q: T.Tensor((H, S, D), dtype),
        K: T.Tensor((H, S, D), dtype),
        V: T.Tensor((H, S, E), dtype),
        O: T.Tensor((H, S, E), dtype),  # noqa: E741
    ):
        with T.Kernel(H) as h:
            q = T.alloc_shared((C, D), dtype)
            k = T.alloc_shared((C, D), dtype)
            v = T.alloc_shared((C, E), dtype)
            p = T.alloc_shared((C, C), dtype)
            g = T.alloc_shared((D, E), dtype)
            s = T.alloc_fragment((C, C), "float32")
            state = T.alloc_fragment((D, E), "float32")
            T.clear(state)
            for c in T.Pipelined(T.ceildiv(S, C)):
                T.copy(Q[h, c * C, 0], q)
                T.copy(K[h, c * C, 0], k)
                T.copy(V[h, c * C, 0], v)
                s[:, :] = q @ k.T
                for i, j in T.Parallel(C, C):
                    s[i, j] = T.if_then_else(i >= j, s[i, j], 0)
                T.copy(s, p)
                T.copy(state, g)
                T.copy(p @ v + q @ g, O[h, c * C, 0])
                state[:, :] = state + k.T @ v

    return linear_attention


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    return np.tril(q @ k.swapaxes(1, 2)) @ v


def main() -> None:
    rng = np.random.default_rng(0)
    for H, S, D, E in [(2, 256, 64, 64), (1, 100, 64, 128)]:
        q, k, v = (rng.uniform(-0.3, 0.3, (H, S, n)).astype(np.float16) for n in (D, D, E))
        error = np.abs(linear_attention(H, S, D, E)(q, k, v) - reference(q, k, v)).max()
        print(f"linear_attention {H} x {S}, {D} and {E}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
