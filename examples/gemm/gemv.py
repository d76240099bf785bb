"""y = W @ x: one token through a linear layer."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def gemv(N, K, BN=64, BK=256):
    @T.prim_func
    def gemv(W: T.Tensor((N, K), "float16"), x: T.Tensor((K,), "float16"), y: T.Tensor((N,), "float16")):
        with T.Kernel(T.ceildiv(N, BN)) as bx:
            w = T.alloc_shared((BN, BK), "float16")
            v = T.alloc_shared((BK,), "float16")
            c = T.alloc_fragment((BN,), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK)):
                T.copy(W[bx * BN, k * BK], w)
                T.copy(x[k * BK], v)
                products = T.cast(w, "float32") * T.cast(v, "float32")[None, :]
                c[:] = c + T.reduce_sum(products, dim=1)
            T.copy(c, y[bx * BN])

    return gemv


def reference(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return w.astype(np.float32) @ x.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    for N, K in [(512, 512), (300, 100)]:
        w, x = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((N, K), (K,)))
        error = np.abs(gemv(N, K)(w, x).astype(np.float32) - reference(w, x)).max()
        print(f"gemv {N} x {K}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
