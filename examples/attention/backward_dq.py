"""dQ of causal attention: L are the log-sum-exps of the rows of scores, Z the sums of dO * O over each row."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def backward_dq(B, H, S, D, BM=64, BN=64, dtype="float16", accum_dtype="float32"):
    scale = 1 / math.sqrt(D)
    shape, rows = (B, H, S, D), (B, H, S)

    @T.prim_func
    def backward_dq(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        dO: T.Tensor(shape, dtype),
        L: T.Tensor(rows, accum_dtype),
        Z: T.Tensor(rows, accum_dtype),
        dQ: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(S, BM), H, B) as (bx, h, b):
            q = T.alloc_shared((BM, D), dtype)
            k = T.alloc_shared((BN, D), dtype)
            v = T.alloc_shared((BN, D), dtype)
            do = T.alloc_shared((BM, D), dtype)
            ds = T.alloc_shared((BM, BN), dtype)
            s = T.alloc_fragment((BM, BN), accum_dtype)
            dp = T.alloc_fragment((BM, BN), accum_dtype)
            dq = T.alloc_fragment((BM, D), accum_dtype)
            T.clear(dq)
            l = T.alloc_fragment((BM,), accum_dtype)  # noqa: E741
            z = T.alloc_fragment((BM,), accum_dtype)

            T.copy(Q[b, h, bx * BM, 0], q)
            T.copy(dO[b, h, bx * BM, 0], do)
            T.copy(L[b, h, bx * BM], l)
            T.copy(Z[b, h, bx * BM], z)
            for j in T.Pipelined(T.ceildiv(T.min(S, (bx + 1) * BM), BN)):
                T.copy(K[b, h, j * BN, 0], k)
                T.copy(V[b, h, j * BN, 0], v)
                s[:, :] = T.exp((q @ k.T) * scale - l[:, None])
                for x, y in T.Parallel(BM, BN):
                    s[x, y] = T.if_then_else(bx * BM + x >= j * BN + y, s[x, y], 0)
                dp[:, :] = do @ v.T
                T.copy(s * (dp - z[:, None]) * scale, ds)
                T.gemm(ds, k, dq)
            T.copy(dq, dQ[b, h, bx * BM, 0])

    return backward_dq


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, do: np.ndarray) -> dict[str, np.ndarray]:
    """What the backward pass takes from the forward pass, and the gradients, in NumPy, float32."""
    q, k, v, do = (x.astype(np.float32) for x in (q, k, v, do))
    scale = 1 / math.sqrt(q.shape[-1])
    s = np.where(np.tri(q.shape[-2], dtype=bool), q @ k.swapaxes(-1, -2) * scale, -np.inf)
    m = s.max(-1, keepdims=True)
    logs = m + np.log(np.exp(s - m).sum(-1, keepdims=True))
    p = np.exp(s - logs)
    z = (do * (p @ v)).sum(-1, keepdims=True)
    ds = p * (do @ v.swapaxes(-1, -2) - z) * scale
    return {"L": logs[..., 0], "Z": z[..., 0], "dQ": ds @ k}


def main() -> None:
    rng = np.random.default_rng(0)
    for shape in [(1, 2, 200, 64), (1, 1, 64, 128)]:
        q, k, v, do = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(4))
        want = attention(q, k, v, do)
        dq = backward_dq(*shape)(q, k, v, do, want["L"], want["Z"])
        error = np.abs(dq.astype(np.float32) - want["dQ"]).max()
        print(f"backward_dq {shape}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
