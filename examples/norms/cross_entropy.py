"""The loss of each token: the log of the sum of exp(X) over its row less the logit of its target, which is gathered."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def cross_entropy(M, N, BM=8, BN=1024, dtype="bfloat16"):
    @T.prim_func
    def cross_entropy(X: T.Tensor((M, N), dtype), TARGET: T.Tensor((M,), "int32"), LOSS: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, BN), dtype)
            f = T.alloc_fragment((BM, BN), "float32")
            m = T.alloc_fragment((BM,), "float32")
            T.fill(m, -T.infinity("float32"))
            l = T.alloc_fragment((BM,), "float32")  # noqa: E741
            T.clear(l)
            m_old = T.alloc_fragment((BM,), "float32")
            at = T.alloc_fragment((BM,), "float32")
            for k in T.Pipelined(T.ceildiv(N, BN)):
                T.copy(X[bx * BM, k * BN], x)
                T.copy(x, f)
                T.copy(m, m_old)
                T.reduce_max(f, m, dim=1, clear=False)
                l[:] = l * T.exp(m_old - m) + T.reduce_sum(T.exp(f - m[:, None]), dim=1)
            for i in T.Parallel(BM):
                at[i] = X[bx * BM + i, TARGET[bx * BM + i]]
            T.copy(m + T.log(l) - at, LOSS[bx * BM])

    return cross_entropy


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N in [(32, 2048), (9, 1500)]:
        x, target = rng.uniform(-4, 4, (M, N)).astype(np.float16), rng.integers(0, N, M).astype(np.int32)
        f = x.astype(np.float32)
        expected = np.log(np.exp(f).sum(1)) - f[np.arange(M), target]
        error = np.abs(cross_entropy(M, N, dtype="float16")(x, target) - expected).max()
        print(f"cross_entropy {M} x {N}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
