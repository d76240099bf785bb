"""Y[b, h, s] = X[b, s, h]: the rows of each head lie together."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def permute(B, S, H, D, BS=64, dtype="float16"):
    @T.prim_func
    def permute(X: T.Tensor((B, S, H, D), dtype), Y: T.Tensor((B, H, S, D), dtype)):
        with T.Kernel(T.ceildiv(S, BS), H, B) as (bs, h, b):
            x = T.alloc_shared((BS, D), dtype)
            T.copy(X[b, bs * BS : bs * BS + BS, h, 0:D], x)
            T.copy(x, Y[b, h, bs * BS, 0])

    return permute


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    return x.transpose(0, 2, 1, 3)


def main() -> None:
    rng = np.random.default_rng(0)
    for B, S, H, D in [(2, 128, 8, 64), (1, 100, 3, 80)]:
        x = rng.standard_normal((B, S, H, D)).astype(np.float16)
        error = np.abs(permute(B, S, H, D)(x) - reference(x)).max()
        print(f"permute {B} x {S} x {H} x {D}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
