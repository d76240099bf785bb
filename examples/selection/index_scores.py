"""S = sum over the heads of W[:, h] * relu(Q[:, h] @ K.T): how much each key matters to each query (the lightning indexer)."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def index_scores(M, N, H, D, BM=64, BN=128, dtype="float16"):
    @T.prim_func
    def index_scores(
        Q: T.Tensor((M, H, D), dtype), K: T.Tensor((N, D), dtype), W: T.Tensor((M, H), "float32"), S: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN)) as (bx, by):
            k = T.alloc_shared((BN, D), dtype)
            q = T.alloc_shared((BM, D), dtype)
            w = T.alloc_shared((BM,), "float32")
            c = T.alloc_fragment((BM, BN), "float32")
            s = T.alloc_fragment((BM, BN), "float32")
            T.clear(s)
            T.copy(K[by * BN, 0], k)
            for h in T.Pipelined(H):
                T.copy(Q[bx * BM : bx * BM + BM, h, 0:D], q)
                c[:, :] = q @ k.T
                T.copy(W[bx * BM : bx * BM + BM, h], w)
                s[:, :] = s + T.relu(c) * w[:, None]
            T.copy(s, S[bx * BM, by * BN])

    return index_scores


def reference(q: np.ndarray, k: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    scores = np.einsum("mhd,nd->mhn", q.astype(np.float64), k.astype(np.float64))
    return np.einsum("mhn,mh->mn", np.maximum(scores, 0), w)


def main() -> None:
    rng = np.random.default_rng(0)
    for M, N, H, D in [(64, 512, 8, 64), (33, 100, 4, 128)]:
        q, k = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, H, D), (N, D)))
        w = rng.standard_normal((M, H), np.float32)
        error = np.abs(index_scores(M, N, H, D)(q, k, w) - reference(q, k, w)).max()
        print(f"index_scores {M} x {N}, {H} heads of {D}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
