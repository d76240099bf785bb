"""Mamba-2's scan of a head, S = exp(dt a) S + dt b x.T and y = S.T c, by chunks of CL with the state S of N x P between them."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def ssd(L, H, P, N, CL=64, dtype="float16"):
    @T.prim_func
    def ssd(
        X: T.Tensor((L, H, P), dtype),
        DT: T.Tensor((L, H), "float32"),
        A: T.Tensor((H,), "float32"),
        B: T.Tensor((L, N), dtype),
        C: T.Tensor((L, N), dtype),
        Y: T.Tensor((L, H, P), dtype),
    ):
        with T.Kernel(H) as h:
            x = T.alloc_shared((CL, P), dtype)
            b = T.alloc_shared((CL, N), dtype)
            c = T.alloc_shared((CL, N), dtype)
            p = T.alloc_shared((CL, CL), dtype)
            cg = T.alloc_shared((CL, N), dtype)
            bg = T.alloc_shared((CL, N), dtype)
            held = T.alloc_shared((N, P), dtype)
            dt = T.alloc_fragment((CL,), "float32")
            a = T.alloc_fragment((1,), "float32")
            g = T.alloc_fragment((CL,), "float32")
            s = T.alloc_fragment((CL, CL), "float32")
            state = T.alloc_fragment((N, P), "float32")
            T.clear(state)
            T.copy(A[h : h + 1], a)
            for k in T.Pipelined(T.ceildiv(L, CL)):
                T.copy(X[k * CL : k * CL + CL, h, 0:P], x)
                T.copy(B[k * CL, 0], b)
                T.copy(C[k * CL, 0], c)
                T.copy(DT[k * CL : k * CL + CL, h], dt, pad_value=0)
                for i in T.Parallel(CL):
                    g[i] = dt[i] * a[0]
                T.cumsum(g, g)
                s[:, :] = c @ b.T
                for i, j in T.Parallel(CL, CL):
                    s[i, j] = T.if_then_else(i >= j, s[i, j] * T.exp(g[i] - g[j]) * dt[j], 0)
                T.copy(s, p)
                T.copy(state, held)
                cg[:, :] = c * T.exp(g)[:, None]
                T.copy(p @ x + cg @ held, Y[k * CL : k * CL + CL, h, 0:P])
                for i, n in T.Parallel(CL, N):
                    bg[i, n] = b[i, n] * (dt[i] * T.exp(g[CL - 1] - g[i]))
                for n, j in T.Parallel(N, P):
                    state[n, j] = state[n, j] * T.exp(g[CL - 1])
                state[:, :] = state + bg.T @ x

    return ssd


def reference(x: np.ndarray, dt: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The same in NumPy, step by step."""
    x, b, c = (v.astype(np.float64) for v in (x, b, c))
    state, out = np.zeros((x.shape[1], b.shape[1], x.shape[2])), []
    for t in range(len(x)):
        state = np.exp(dt[t] * a)[:, None, None] * state + dt[t][:, None, None] * b[t][:, None] * x[t][:, None, :]
        out.append(np.einsum("hnp,n->hp", state, c[t]))
    return np.array(out)


def main() -> None:
    rng = np.random.default_rng(0)
    for L, H, P, N in [(256, 4, 64, 128), (100, 2, 64, 64)]:
        x, b, c = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((L, H, P), (L, N), (L, N)))
        dt, a = rng.uniform(0, 0.1, (L, H)).astype(np.float32), -rng.uniform(1, 16, H).astype(np.float32)
        error = np.abs(ssd(L, H, P, N)(x, dt, a, b, c) - reference(x, dt, a, b, c)).max()
        print(f"ssd {L} x {H} x {P}, states of {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
