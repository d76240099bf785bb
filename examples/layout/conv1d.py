"""A causal convolution of width 4 of each channel, as before a scan: Y[t] = silu(sum over w of X[t + w - 3] W[w] + B)."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def conv1d(L, D, BL=16, BD=128, dtype="float16"):
    @T.prim_func
    def conv1d(
        X: T.Tensor((L, D), dtype), W: T.Tensor((4, D), "float32"), B: T.Tensor((D,), "float32"), Y: T.Tensor((L, D), dtype)
    ):
        with T.Kernel(T.ceildiv(L, BL), T.ceildiv(D, BD)) as (bl, bd):
            x = T.alloc_shared((BL + 3, BD), dtype)
            w = T.alloc_shared((4, BD), "float32")
            b = T.alloc_shared((BD,), "float32")
            f = T.alloc_fragment((BL + 3, BD), "float32")
            y = T.alloc_fragment((BL, BD), "float32")
            T.copy(X[bl * BL - 3, bd * BD], x, pad_value=0)
            T.copy(W[0, bd * BD], w)
            T.copy(B[bd * BD], b)
            T.copy(x, f)
            for t, d in T.Parallel(BL, BD):
                y[t, d] = f[t, d] * w[0, d] + f[t + 1, d] * w[1, d] + f[t + 2, d] * w[2, d] + f[t + 3, d] * w[3, d] + b[d]
            y[:, :] = y / (1 + T.exp(-y))
            T.copy(y, Y[bl * BL, bd * BD])

    return conv1d


def reference(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    p = np.pad(x.astype(np.float64), ((3, 0), (0, 0)))
    y = sum(p[i : i + len(x)] * w[i] for i in range(4)) + b
    return y / (1 + np.exp(-y))


def main() -> None:
    rng = np.random.default_rng(0)
    for L, D in [(128, 256), (37, 200)]:
        x = rng.standard_normal((L, D)).astype(np.float16)
        w, b = rng.standard_normal((4, D), np.float32), rng.standard_normal(D, np.float32)
        error = np.abs(conv1d(L, D)(x, w, b) - reference(x, w, b)).max()
        print(f"conv1d {L} x {D}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
