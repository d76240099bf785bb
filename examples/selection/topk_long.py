"""The K largest numbers of each row of any length, and where they stand: the best so far are merged with the best of BN more."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[1, 2])
def topk_long(M, N, K, BN=1024):
    @T.prim_func
    def topk_long(X: T.Tensor((M, N), "float32"), V: T.Tensor((M, K), "float32"), I: T.Tensor((M, K), "int32")):  # noqa: E741
        with T.Kernel(M) as bx:
            x = T.alloc_fragment((BN,), "float32")
            new = T.alloc_fragment((2 * K,), "float32")
            both = T.alloc_fragment((4 * K,), "float32")
            odd = T.alloc_fragment((2 * K,), "float32")
            v = T.alloc_fragment((K,), "float32")
            i = T.alloc_fragment((K,), "float32")
            best = T.alloc_fragment((2 * K,), "float32")
            T.fill(best, -T.infinity("float32"))
            for n in T.Parallel(2 * K):
                odd[n] = n - 2 * T.floor(n * 0.5)
            for j in T.serial(T.ceildiv(N, BN)):
                T.copy(X[bx, j * BN], x, pad_value=-T.infinity("float32"))
                T.tile.topk(new, x, K, BN)
                new[:] = new + odd * (j * BN)  # places in the row, not in the part
                T.tile.merge_sort(both, best, new)
                for n in T.Parallel(2 * K):
                    best[n] = both[n]
            T.tile.gather_mask(v, best, "P0101")
            T.tile.gather_mask(i, best, "P1010")
            T.copy(v, V[bx, 0])
            T.copy(T.cast(i, "int32"), I[bx, 0])

    return topk_long


def reference(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The same in NumPy."""
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(x, order, 1), order


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, K in [(4, 4096, 128), (2, 2500, 64)]:
        x = rng.standard_normal((M, N), np.float32)
        values, places = topk_long(M, N, K)(x)
        error = np.abs(values - reference(x, K)[0]).max()
        print(f"topk_long {M} x {N}, {K}: largest error {error:.2e}, other places {np.sum(places != reference(x, K)[1])}")


if __name__ == "__main__":
    main()
