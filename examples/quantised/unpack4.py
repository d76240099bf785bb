"""Y = the numbers of 4 bits in W as bytes, two of them in each, the lower ones first."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def unpack4(N, K, BN=32, BK=512):
    @T.prim_func
    def unpack4(W: T.Tensor((N, K // 2), "uint8"), Y: T.Tensor((N, K), "int8")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(K, BK)) as (bx, by):
            p = T.alloc_shared((BN, BK // 2), "uint8")
            w = T.alloc_shared((BN, BK), "int8")
            T.copy(W[bx * BN, by * (BK // 2)], p)
            for i, j in T.Parallel(BN, BK // 2):
                w[i, 2 * j] = T.cast((T.cast(p[i, j], "int16") << 12) >> 12, "int8")
                w[i, 2 * j + 1] = T.cast((T.cast(p[i, j], "int16") << 8) >> 12, "int8")
            T.copy(w, Y[bx * BN, by * BK])

    return unpack4


def reference(w: np.ndarray) -> np.ndarray:
    return (np.stack([w & 15, w >> 4], axis=-1).reshape(len(w), -1) ^ 8).astype(np.int8) - 8


def main() -> None:
    rng = np.random.default_rng(0)
    for N, K in [(256, 512), (50, 200)]:
        w = rng.integers(0, 256, (N, K // 2), np.uint8)
        print(f"unpack4 {N} x {K}: largest error {np.abs(unpack4(N, K)(w) - reference(w)).max()}")


if __name__ == "__main__":
    main()
