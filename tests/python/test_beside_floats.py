"""Whole numbers beside floats: in a quotient, and beside a number that is no whole one, they are floats."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

RNG = np.random.default_rng(0)
N, FLOATS = RNG.integers(1, 60, 64).astype(np.int32), RNG.uniform(-1, 1, 64).astype(np.float32)
VALUES = {
    "a number between": (lambda n, x: n * 0.5 + x, lambda n, x: n * np.float32(0.5) + x),
    "divided": (lambda n, x: n / x, lambda n, x: n / x),
    "a divisor": (lambda n, x: x / (n + 1), lambda n, x: x / (n + 1)),
    "over a float": (lambda n, x: n / 2.0 + 1.0 / n, lambda n, x: n / 2 + 1 / n),
    "exact still": (lambda n, x: (n * 16777216 + 1) - n * 16777216, lambda n, x: np.ones(64)),
}


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("name", VALUES)
def test_whole_numbers_beside_floats(name: str) -> None:
    value, meaning = VALUES[name]

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            n = T.alloc_shared((64,), "int32")
            x = T.alloc_shared((64,), "float32")
            y = T.alloc_shared((64,), "float32")
            T.copy(A, n)
            T.copy(B, x)
            for i in T.Parallel(64):
                y[i] = value(n[i], x[i])
            T.copy(y, C)

    assert np.allclose(tile_eg.compile(main, out_idx=[2])(N, FLOATS), meaning(N, FLOATS), rtol=1e-5)


def test_whole_numbers_have_no_quotient_among_themselves() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            n = T.alloc_shared((64,), "int32")
            y = T.alloc_shared((64,), "float32")
            T.copy(A, n)
            for i in T.Parallel(64):
                y[i] = n[i] / n[i]
            T.copy(y, C)

    with pytest.raises(tile_eg.TileError, match="`/` takes f16, f32"):
        tile_eg.compile(main, out_idx=[1]).get_kernel_source()
