"""Z = X + Y, of any shape: tiles and grid are found."""

import numpy as np

import tile_eg
import tile_eg.language as T

M, N = T.symbolic("M"), T.symbolic("N")


@tile_eg.jit
def add(M=M, N=N, dtype="bfloat16"):
    @T.prim_func
    def add(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)) -> T.Tensor((M, N), dtype):
        Z = X + Y
        return Z  # noqa: RET504 (the output's name)

    return add


def main() -> None:
    rng = np.random.default_rng(0)
    any_size = add(dtype="float32")
    for M, N in [(256, 512), (100, 1000), (3, 7)]:
        x, y = (rng.standard_normal((M, N), np.float32) for _ in range(2))
        print(f"add {M} x {N}: largest error {np.abs(any_size(x, y) - (x + y)).max():.2e}")


if __name__ == "__main__":
    main()
