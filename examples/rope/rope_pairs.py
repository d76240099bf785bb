"""RoPE with interleaved pairs: elements 2j and 2j + 1 of each head turn together, by the angle of their position."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def rope_pairs(S, H, D, BS=32, dtype="float16"):
    shape, table = (S, H, D), (S, D // 2)

    @T.prim_func
    def rope_pairs(
        X: T.Tensor(shape, dtype), COS: T.Tensor(table, "float32"), SIN: T.Tensor(table, "float32"), Y: T.Tensor(shape, dtype)
    ):
        with T.Kernel(T.ceildiv(S, BS)) as bs:
            x = T.alloc_shared((BS, D), dtype)
            c = T.alloc_shared((BS, D // 2), "float32")
            s = T.alloc_shared((BS, D // 2), "float32")
            y = T.alloc_fragment((BS, D), dtype)
            T.copy(COS[bs * BS, 0], c)
            T.copy(SIN[bs * BS, 0], s)
            for h in T.Pipelined(H):
                T.copy(X[bs * BS : bs * BS + BS, h, :], x)
                for i, j in T.Parallel(BS, D // 2):
                    y[i, 2 * j] = x[i, 2 * j] * c[i, j] - x[i, 2 * j + 1] * s[i, j]
                    y[i, 2 * j + 1] = x[i, 2 * j + 1] * c[i, j] + x[i, 2 * j] * s[i, j]
                T.copy(y, Y[bs * BS : bs * BS + BS, h, :])

    return rope_pairs


def turned(x: np.ndarray, c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    a, b = x[..., ::2], x[..., 1::2]
    c, s = c[:, None], s[:, None]
    return np.stack([a * c - b * s, b * c + a * s], axis=-1).reshape(x.shape)


def main() -> None:
    rng = np.random.default_rng(0)
    for S, H, D, BS in [(64, 4, 128, 32), (37, 3, 64, 1)]:
        x = rng.uniform(-1, 1, (S, H, D)).astype(np.float16)
        angle = np.arange(S)[:, None] / 10000 ** (np.arange(D // 2) * 2 / D)
        c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        error = np.abs(rope_pairs(S, H, D, BS)(x, c, s).astype(np.float32) - turned(x.astype(np.float32), c, s)).max()
        print(f"rope_pairs {S} x {H} x {D}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
