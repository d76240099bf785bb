"""The sums of dO * O over each row, which the backward pass of attention takes."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit
def row_products(B, H, S, D):
    @T.prim_func
    def row_products(
        dO: T.Tensor((B, H, S, D), "float16"), O: T.Tensor((B, H, S, D), "float16")  # noqa: E741
    ) -> T.Tensor((B, H, S), "float32"):
        return T.sum(T.cast(dO, "float32") * T.cast(O, "float32"), axis=-1)

    return row_products


def products(do: np.ndarray, o: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    return (do.astype(np.float32) * o.astype(np.float32)).sum(-1)


def main() -> None:
    rng = np.random.default_rng(0)
    for shape in [(1, 2, 200, 64), (2, 1, 33, 128)]:
        do, o = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(2))
        error = np.abs(row_products(*shape)(do, o) - products(do, o)).max()
        print(f"row_products {shape}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
