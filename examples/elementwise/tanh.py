"""Y = tanh(X), element by element: tiles and grid are found."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit
def tanh(M, N, dtype="float32"):
    @T.prim_func
    def tanh(X: T.Tensor((M, N), dtype)) -> T.Tensor((M, N), dtype):
        Y = T.tanh(X)
        return Y  # noqa: RET504 (the output's name)

    return tanh


def reference(x: np.ndarray) -> np.ndarray:
    return np.tanh(x)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 512), (100, 1000), (3, 7)]:
        x = rng.uniform(-4, 4, (M, N)).astype(np.float32)
        error = np.abs(tanh(M, N)(x).astype(np.float32) - reference(x.astype(np.float32))).max()
        print(f"tanh {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
