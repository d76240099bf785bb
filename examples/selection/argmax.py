"""The first place of the largest number of each row."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def argmax(M, N, BM=8):
    @T.prim_func
    def argmax(X: T.Tensor((M, N), "float32"), I: T.Tensor((M,), "int32")):  # noqa: E741
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, N), "float32")
            i = T.alloc_fragment((BM,), "int32")
            T.copy(X[bx * BM, 0], x, pad_value=0)
            T.argmax(x, i, dim=1)
            T.copy(i, I[bx * BM])

    return argmax


def reference(x: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    return x.argmax(axis=1)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(64, 1024), (7, 96)]:
        x = rng.standard_normal((M, N), np.float32)
        print(f"argmax {M} x {N}: other places {np.sum(argmax(M, N)(x) != reference(x))}")


if __name__ == "__main__":
    main()
