"""Causal attention as an expression of whole arrays: grid, tiles and the running softmax are found."""

import math

import numpy as np

import tile_eg
import tile_eg.language as T

H, S, D = T.symbolic("H"), T.symbolic("S"), T.symbolic("D")


@tile_eg.jit
def attention(Q: T.Tensor((H, S, D), "float16"), K: T.Tensor((H, S, D), "float16"), V: T.Tensor((H, S, D), "float16")):
    i = T.arange(S)
    s = T.where(i[:, None] >= i, Q @ K.mT / math.sqrt(D), -T.infinity())
    return T.softmax(s) @ V


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    s = np.where(np.tri(q.shape[1], dtype=bool), q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def main() -> None:
    rng = np.random.default_rng(0)
    for shape in [(2, 256, 64), (1, 200, 64)]:
        q, k, v = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(3))
        error = np.abs(attention(q, k, v).astype(np.float32) - reference(q, k, v)).max()
        print(f"attention {shape}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
