"""The K largest numbers of each row, the largest first, and where they stand."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[1, 2])
def topk(M, N, K):
    @T.prim_func
    def topk(X: T.Tensor((M, N), "float32"), V: T.Tensor((M, K), "float32"), I: T.Tensor((M, K), "int32")):  # noqa: E741
        with T.Kernel(M) as bx:
            x = T.alloc_fragment((N,), "float32")
            pairs = T.alloc_fragment((2 * K,), "float32")
            v = T.alloc_fragment((K,), "float32")
            i = T.alloc_fragment((K,), "float32")
            T.copy(X[bx, 0], x)
            T.tile.topk(pairs, x, K, N)
            T.tile.gather_mask(v, pairs, "P0101")
            T.tile.gather_mask(i, pairs, "P1010")
            T.copy(v, V[bx, 0])
            T.copy(T.cast(i, "int32"), I[bx, 0])

    return topk


def reference(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The same in NumPy."""
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(x, order, 1), order


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(8, 1024, 64), (3, 100, 5)]:
        x = rng.standard_normal((M, N), np.float32)
        values, places = topk(M, N, K)(x)
        error = np.abs(values - reference(x, K)[0]).max()
        print(f"topk {M} x {N}, {K}: largest error {error:.2e}, other places {np.sum(places != reference(x, K)[1])}")


if __name__ == "__main__":
    main()
