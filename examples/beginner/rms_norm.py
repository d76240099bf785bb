"""RMS norm of rows of any length, and its scale: NumPy's own functions are taken, too."""

import numpy as np

import tile_eg
import tile_eg.language as T

M, N = T.symbolic("M"), T.symbolic("N")


@tile_eg.jit
def rms_norm(X: T.Tensor((M, N), "float32"), W: T.Tensor((N,), "float32")):
    scale = 1 / np.sqrt(np.mean(X * X, axis=-1, keepdims=True) + 1e-5)
    return X * scale * W, scale


def main() -> None:
    rng = np.random.default_rng(0)
    for shape in [(256, 1024), (7, 333)]:
        x, w = rng.standard_normal(shape, np.float32), rng.standard_normal(shape[1:], np.float32)
        want = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)
        y, scale = rms_norm(x, w)
        error = max(np.abs(y - x * want * w).max(), np.abs(scale - want).max())
        print(f"rms_norm {shape}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
