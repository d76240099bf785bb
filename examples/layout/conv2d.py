"""A convolution of KH x KW, 0 beyond the border, channels lying together: a product for each shift of the window."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-1])
def conv2d(B, H, W, C, O, KH=3, KW=3, BW=32, dtype="float16"):  # noqa: E741
    @T.prim_func
    def conv2d(X: T.Tensor((B, H, W, C), dtype), F: T.Tensor((KH, KW, C, O), dtype), Y: T.Tensor((B, H, W, O), dtype)):
        with T.Kernel(T.ceildiv(W, BW), H, B) as (bw, y, b):
            x = T.alloc_shared((BW, C), dtype)
            f = T.alloc_shared((C, O), dtype)
            c = T.alloc_fragment((BW, O), "float32")
            T.clear(c)
            for k in T.Pipelined(KH * KW):
                T.copy(X[b, y + k // KW - KH // 2, bw * BW + k % KW - KW // 2, 0], x, pad_value=0)
                T.copy(F[k // KW, k % KW, 0, 0], f)
                T.gemm(x, f, c)
            T.copy(c, Y[b, y, bw * BW, 0])

    return conv2d


def reference(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    (kh, kw), (_, h, w, _) = f.shape[:2], x.shape
    p = np.pad(x.astype(np.float64), ((0, 0), (kh // 2, kh // 2), (kw // 2, kw // 2), (0, 0)))
    return sum(p[:, i : i + h, j : j + w] @ f[i, j] for i in range(kh) for j in range(kw))


def main() -> None:
    rng = np.random.default_rng(0)
    for B, H, W, C, O in [(1, 16, 32, 32, 64), (2, 5, 40, 16, 48)]:  # noqa: E741
        x, f = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((B, H, W, C), (3, 3, C, O)))
        error = np.abs(conv2d(B, H, W, C, O)(x, f) - reference(x, f)).max()
        print(f"conv2d {B} x {H} x {W} x {C} to {O}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
