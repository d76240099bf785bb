"""dK and dV of causal attention: L are the log-sum-exps of the rows of scores, Z the sums of dO * O over each row."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-2, -1])
def backward_dkv(B, H, S, D, BM=64, BN=64, dtype="float16", accum_dtype="float32"):
    scale = 1 / math.sqrt(D)
    shape, rows = (B, H, S, D), (B, H, S)

    @T.prim_func
    def backward_dkv(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        dO: T.Tensor(shape, dtype),
        L: T.Tensor(rows, accum_dtype),
        Z: T.Tensor(rows, accum_dtype),
        dK: T.Tensor(shape, dtype),
        dV: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(S, BN), H, B) as (bx, h, b):
            q = T.alloc_shared((BM, D), dtype)
            k = T.alloc_shared((BN, D), dtype)
            v = T.alloc_shared((BN, D), dtype)
            do = T.alloc_shared((BM, D), dtype)
            p = T.alloc_shared((BM, BN), dtype)
            ds = T.alloc_shared((BM, BN), dtype)
            s = T.alloc_fragment((BM, BN), accum_dtype)
            dp = T.alloc_fragment((BM, BN), accum_dtype)
            dk = T.alloc_fragment((BN, D), accum_dtype)
            T.clear(dk)
            dv = T.alloc_fragment((BN, D), accum_dtype)
            T.clear(dv)
            l = T.alloc_fragment((BM,), accum_dtype)  # noqa: E741
            z = T.alloc_fragment((BM,), accum_dtype)

            T.copy(K[b, h, bx * BN, 0], k)
            T.copy(V[b, h, bx * BN, 0], v)
            for i in T.Pipelined(bx * BN // BM, T.ceildiv(S, BM)):
                T.copy(Q[b, h, i * BM, 0], q)
                T.copy(dO[b, h, i * BM, 0], do)
                T.copy(L[b, h, i * BM], l)
                T.copy(Z[b, h, i * BM], z)
                s[:, :] = T.exp((q @ k.T) * scale - l[:, None])
                for y, x in T.Parallel(BM, BN):
                    s[y, x] = T.if_then_else(i * BM + y >= bx * BN + x, s[y, x], 0)
                T.copy(s, p)
                T.gemm(p, do, dv, transpose_A=True)
                dp[:, :] = do @ v.T
                T.copy(s * (dp - z[:, None]) * scale, ds)
                T.gemm(ds, q, dk, transpose_A=True)
            T.copy(dk, dK[b, h, bx * BN, 0])
            T.copy(dv, dV[b, h, bx * BN, 0])

    return backward_dkv


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
    return {"L": logs[..., 0], "Z": z[..., 0], "dK": ds.swapaxes(-1, -2) @ q, "dV": p.swapaxes(-1, -2) @ do}


def main() -> None:
    rng = np.random.default_rng(0)
    for shape in [(1, 2, 200, 64), (1, 1, 64, 128)]:
        q, k, v, do = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(4))
        want = attention(q, k, v, do)
        found = backward_dkv(*shape)(q, k, v, do, want["L"], want["Z"])
        error = max(np.abs(x.astype(np.float32) - want[n]).max() for n, x in zip(("dK", "dV"), found, strict=True))
        print(f"backward_dkv {shape}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
