"""Mamba's selective scan, channel by channel: h = exp(dt a) h + dt b x, y = sum over the state of c h."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def selective_scan(L, D, N, BD=64, BL=16):
    @T.prim_func
    def selective_scan(
        X: T.Tensor((L, D), "float32"),
        DT: T.Tensor((L, D), "float32"),
        A: T.Tensor((N, D), "float32"),
        B: T.Tensor((L, N), "float32"),
        C: T.Tensor((L, N), "float32"),
        Y: T.Tensor((L, D), "float32"),
    ):
        with T.Kernel(T.ceildiv(D, BD)) as bx:
            x = T.alloc_shared((BL, BD), "float32")
            dt = T.alloc_shared((BL, BD), "float32")
            a = T.alloc_shared((N, BD), "float32")
            b = T.alloc_shared((BL, N), "float32")
            c = T.alloc_shared((BL, N), "float32")
            h = T.alloc_fragment((N, BD), "float32")
            T.clear(h)
            g = T.alloc_fragment((N, BD), "float32")
            y = T.alloc_fragment((BL, BD), "float32")
            T.copy(A[0, bx * BD], a)
            for k in T.Pipelined(T.ceildiv(L, BL)):
                T.copy(X[k * BL, bx * BD], x)
                T.copy(DT[k * BL, bx * BD], dt)
                T.copy(B[k * BL, 0], b)
                T.copy(C[k * BL, 0], c)
                for t in T.serial(BL):
                    for n, d in T.Parallel(N, BD):
                        h[n, d] = T.exp(dt[t, d] * a[n, d]) * h[n, d] + b[t, n] * (dt[t, d] * x[t, d])
                    for n, d in T.Parallel(N, BD):
                        g[n, d] = h[n, d] * c[t, n]
                    T.reduce_sum(g, y[t, :], dim=0)
                T.copy(y, Y[k * BL, bx * BD])

    return selective_scan


def reference(x: np.ndarray, dt: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    state, out = np.zeros(a.shape), []
    for t in range(len(x)):
        state = np.exp(dt[t] * a) * state + b[t][:, None] * (dt[t] * x[t])
        out.append((state * c[t][:, None]).sum(axis=0))
    return np.array(out)


def main() -> None:
    rng = np.random.default_rng(0)
    for L, D, N in [(64, 128, 16), (37, 150, 16)]:
        x, dt, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((L, D), (L, D), (L, N), (L, N)))
        dt, a = np.abs(dt), -rng.uniform(0.5, 8, (N, D)).astype(np.float32)
        error = np.abs(selective_scan(L, D, N)(x, dt, a, b, c) - reference(x, dt, a, b, c)).max()
        print(f"selective_scan {L} x {D}, states of {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
