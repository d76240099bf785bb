"""RoPE with halves: elements j and j + D/2 of each head turn together, by the angle of their position."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def rope_halves(S, H, D, BS=32, dtype="float16"):
    shape, table = (S, H, D), (S, D // 2)

    @T.prim_func
    def rope_halves(
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
                    y[i, j] = x[i, j] * c[i, j] - x[i, j + D // 2] * s[i, j]
                    y[i, j + D // 2] = x[i, j + D // 2] * c[i, j] + x[i, j] * s[i, j]
                T.copy(y, Y[bs * BS : bs * BS + BS, h, :])

    return rope_halves


def turned(x: np.ndarray, c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    a, b = np.split(x, 2, axis=-1)
    c, s = c[:, None], s[:, None]
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)


def main() -> None:
    rng = np.random.default_rng(0)
    for S, H, D in [(64, 4, 128), (37, 3, 64)]:
        x = rng.uniform(-1, 1, (S, H, D)).astype(np.float16)
        angle = np.arange(S)[:, None] / 10000 ** (np.arange(D // 2) * 2 / D)
        c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        error = np.abs(rope_halves(S, H, D)(x, c, s).astype(np.float32) - turned(x.astype(np.float32), c, s)).max()
        print(f"rope_halves {S} x {H} x {D}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
