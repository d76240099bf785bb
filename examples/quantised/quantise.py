"""Q = round(X / s) as bytes, with a scale s = max |X| / 127 for each token."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-2, -1])
def quantise(M, N, BM=16):
    @T.prim_func
    def quantise(X: T.Tensor((M, N), "float16"), Q: T.Tensor((M, N), "int8"), s: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, N), "float16")
            top = T.alloc_fragment((BM,), "float16")
            m = T.alloc_fragment((BM,), "float32")
            T.copy(X[bx * BM, 0], x)
            top[:] = T.reduce_max(T.abs(x), dim=1)
            m[:] = T.max(T.cast(top, "float32"), 1e-5)
            T.copy(m * (1 / 127), s[bx * BM])
            T.copy(T.cast(T.cast(x, "float32") * (127 / m)[:, None], "int8"), Q[bx * BM, 0])

    return quantise


def reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s = np.maximum(np.abs(x.astype(np.float32)).max(axis=1), 1e-5) / 127
    return np.rint(x.astype(np.float32) / s[:, None]), s


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(256, 512), (100, 200)]:
        x = rng.uniform(-1, 1, (M, N)).astype(np.float16)
        error = max(np.abs(a.astype(np.float32) - b).max() for a, b in zip(quantise(M, N)(x), reference(x), strict=True))
        print(f"quantise {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
