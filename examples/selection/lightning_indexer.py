"""The TOPK keys of each query with the largest sum over the heads of W[h] * relu(q[h] . k); no score is stored."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def lightning_indexer(M, N, H, D, TOPK, BN=256, dtype="float16"):
    @T.prim_func
    def lightning_indexer(
        Q: T.Tensor((M, H, D), dtype), K: T.Tensor((N, D), dtype), W: T.Tensor((M, H), "float32"), I: T.Tensor((M, TOPK), "int32")  # noqa: E741
    ):
        with T.Kernel(M) as bx:
            k = T.alloc_shared((BN, D), dtype)
            q = T.alloc_shared((H, D), dtype)
            w = T.alloc_shared((H,), "float32")
            c = T.alloc_fragment((H, BN), "float32")
            t = T.alloc_fragment((BN,), "float32")
            s = T.alloc_fragment((N,), "float32")
            pairs = T.alloc_fragment((2 * TOPK,), "float32")
            i = T.alloc_fragment((TOPK,), "float32")
            T.copy(Q[bx, 0, 0], q)
            T.copy(W[bx, 0], w)
            for j in T.Pipelined(T.ceildiv(N, BN)):
                T.copy(K[j * BN, 0], k)
                c[:, :] = q @ k.T
                t[:] = T.reduce_sum(T.relu(c) * w[:, None], dim=0)
                T.copy(t, s[j * BN : j * BN + BN])
            T.tile.topk(pairs, s, TOPK, N)
            T.tile.gather_mask(i, pairs, "P1010")
            T.copy(T.cast(i, "int32"), I[bx, 0])

    return lightning_indexer


def reference(q: np.ndarray, k: np.ndarray, w: np.ndarray, count: int) -> np.ndarray:
    """The same in NumPy."""
    scores = np.einsum("mhd,nd->mhn", q.astype(np.float64), k.astype(np.float64))
    return np.argsort(-np.einsum("mhn,mh->mn", np.maximum(scores, 0), w), axis=1, kind="stable")[:, :count]


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, H, D, TOPK in [(8, 1024, 16, 64, 64), (2, 512, 64, 128, 128)]:
        q, k = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((M, H, D), (N, D)))
        w = rng.integers(-4, 5, (M, H)).astype(np.float32)
        other = np.sum(lightning_indexer(M, N, H, D, TOPK)(q, k, w) != reference(q, k, w, TOPK))
        print(f"lightning_indexer {M} x {N}, {H} heads of {D}: other places {other}")


if __name__ == "__main__":
    main()
