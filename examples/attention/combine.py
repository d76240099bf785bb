"""The attention over all keys from that over P parts of them: each part counts by the log-sum-exp of its scores."""

import numpy as np

import tile_eg
import tile_eg.language as T


@tile_eg.jit
def combine(B, P, H, D):
    @T.prim_func
    def combine(
        O: T.Tensor((B, P, H, D), "float32"),  # noqa: E741
        L: T.Tensor((B, P, H), "float32")
    ) -> T.Tensor((B, H, D), "float16"):
        w = T.softmax(L, axis=1)
        return T.sum(w[:, :, :, None] * O, axis=1)

    return combine


def combined(o: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """The same in NumPy, float32."""
    e = np.exp(logs - logs.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True))[..., None] * o


def main() -> None:
    rng = np.random.default_rng(0)
    for b, p, h, d in [(2, 4, 8, 64), (1, 3, 5, 80)]:
        o, logs = rng.standard_normal((b, p, h, d), np.float32), rng.standard_normal((b, p, h), np.float32)
        error = np.abs(combine(b, p, h, d)(o, logs).astype(np.float32) - combined(o, logs).sum(1)).max()
        print(f"combine {b} x {p} x {h} x {d}: largest error {error:.2e}")


if __name__ == "__main__":
    main()
