"""Group norm of images: each of G groups of channels of an image is centred and scaled as one row; W and BIAS are a channel's."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit
def group_norm(B, C, G, S, dtype="float16"):
    @T.prim_func
    def group_norm(X: T.Tensor((B, C, S), dtype), W: T.Tensor((C,), dtype), BIAS: T.Tensor((C,), dtype)) -> T.Tensor(
        (B, C, S), dtype
    ):
        x = X.astype("float32").reshape(B, G, C // G * S)
        c = x - T.mean(x, axis=2, keepdims=True)
        y = (c * T.rsqrt(T.mean(c * c, axis=2, keepdims=True) + 1e-5)).reshape(B, C, S)
        Y = y * W[:, None] + BIAS[:, None]
        return Y  # noqa: RET504 (the output's name)

    return group_norm


def reference(x: np.ndarray, w: np.ndarray, bias: np.ndarray, G: int) -> np.ndarray:
    """The same in NumPy, float32."""
    rows = x.astype(np.float32).reshape(x.shape[0], G, -1)
    c = rows - rows.mean(2, keepdims=True)
    y = (c / np.sqrt((c * c).mean(2, keepdims=True) + 1e-5)).reshape(x.shape)
    return y * w[:, None].astype(np.float32) + bias[:, None].astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    for B, C, G, S in [(2, 32, 8, 256), (1, 12, 3, 49)]:
        x, w, bias = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((B, C, S), (C,), (C,)))
        error = np.abs(group_norm(B, C, G, S)(x, w, bias).astype(np.float32) - reference(x, w, bias, G)).max()
        print(f"group_norm {B} x {C} x {S} in {G} groups: largest error {error:.2e}")


if __name__ == "__main__":
    main()
