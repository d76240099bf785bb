"""Each row in order, the largest number first, and where its numbers stood."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[1, 2])
def sort(M, N):
    count = T.ceildiv(N, 32) * 32  # sorted by 32 at a time

    @T.prim_func
    def sort(X: T.Tensor((M, N), "float32"), V: T.Tensor((M, N), "float32"), I: T.Tensor((M, N), "int32")):  # noqa: E741
        with T.Kernel(M) as bx:
            x = T.alloc_fragment((N,), "float32")
            pairs = T.alloc_fragment((2 * count,), "float32")
            v = T.alloc_fragment((count,), "float32")
            i = T.alloc_fragment((count,), "float32")
            T.copy(X[bx, 0], x)
            T.tile.sort(pairs, x, N)
            T.tile.gather_mask(v, pairs, "P0101")
            T.tile.gather_mask(i, pairs, "P1010")
            for n in T.Parallel(N):
                V[bx, n] = v[n]
            for n in T.Parallel(N):
                I[bx, n] = T.cast(i[n], "int32")

    return sort


def reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same in NumPy."""
    order = np.argsort(-x, axis=1, kind="stable")
    return np.take_along_axis(x, order, 1), order


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(8, 1024), (3, 96)]:
        x = rng.standard_normal((M, N), np.float32)
        values, places = sort(M, N)(x)
        error = np.abs(values - reference(x)[0]).max()
        print(f"sort {M} x {N}: largest error {error:.2e}, other places {np.sum(places != reference(x)[1])}")


if __name__ == "__main__":
    main()
