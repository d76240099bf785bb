"""RMS norm of each head, its scale, and RoPE with halves, as of queries and keys: X is read once."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def rms_norm_rope(S, H, D, BS=64, dtype="bfloat16"):
    shape, table = (S, H, D), (S, D // 2)

    @T.prim_func
    def rms_norm_rope(
        X: T.Tensor(shape, dtype),
        W: T.Tensor((D,), dtype),
        COS: T.Tensor(table, "float32"),
        SIN: T.Tensor(table, "float32"),
        Y: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(S, BS)) as bs:
            a = T.alloc_shared((BS, D // 2), dtype)
            b = T.alloc_shared((BS, D // 2), dtype)
            c = T.alloc_shared((BS, D // 2), "float32")
            s = T.alloc_shared((BS, D // 2), "float32")
            w = T.alloc_shared((D // 2,), dtype)
            v = T.alloc_shared((D // 2,), dtype)
            x = T.alloc_fragment((BS, D // 2), "float32")
            y = T.alloc_fragment((BS, D // 2), "float32")
            r = T.alloc_fragment((BS,), "float32")
            T.copy(W[0], w)
            T.copy(W[D // 2], v)
            T.copy(COS[bs * BS, 0], c)
            T.copy(SIN[bs * BS, 0], s)
            for h in T.Pipelined(H):
                T.copy(X[bs * BS : bs * BS + BS, h, 0 : D // 2], a)
                T.copy(X[bs * BS : bs * BS + BS, h, D // 2 : D], b)
                T.copy(a, x)
                T.copy(b, y)
                r[:] = T.rsqrt((T.reduce_sum(x * x, dim=1) + T.reduce_sum(y * y, dim=1)) / D + 1e-6)
                x[:, :] = x * r[:, None] * w[None, :]
                y[:, :] = y * r[:, None] * v[None, :]
                T.copy(x * c - y * s, Y[bs * BS : bs * BS + BS, h, 0 : D // 2])
                T.copy(y * c + x * s, Y[bs * BS : bs * BS + BS, h, D // 2 : D])

    return rms_norm_rope


def reference(x: np.ndarray, w: np.ndarray, c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    x = x.astype(np.float32)
    a, b = np.split(x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w.astype(np.float32), 2, axis=-1)
    c, s = c[:, None], s[:, None]
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)


def main() -> None:
    rng = np.random.default_rng(0)
    for S, H, D in [(64, 4, 128), (37, 3, 64)]:
        x, w = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((S, H, D), (D,)))
        angle = np.arange(S)[:, None] / 10000 ** (np.arange(D // 2) * 2 / D)
        c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        y = rms_norm_rope(S, H, D, dtype="float16")(x, w, c, s)
        print(f"rms_norm_rope {S} x {H} x {D}: largest error {np.abs(y.astype(np.float32) - reference(x, w, c, s)).max():.2e}")


if __name__ == "__main__":
    main()
