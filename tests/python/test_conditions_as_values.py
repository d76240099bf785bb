"""A condition of elements as a number: 1 where it holds, else 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import meaning

M, N, B = 13, 21, 8
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-1, 1, (2, M, N)).astype(np.float32)
TEXT = """kernel counts[M=13, N=21](X: f32[M, N], Y: f32[M, N]) -> C: f32[M] {
  grid b = 1
  shared x: f32[M, N], y: f32[M, N]
  x = X[0, 0]
  y = Y[0, 0]
  C[0] = rowsum(x > y) + rowsum((x > 0 and y < 0) * y)
}"""


@tile_eg.jit(out_idx=[-3, -2, -1])
def make() -> Any:
    @T.prim_func
    def kernel(
        X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32"), v: T.Tensor((M,), "int32"),
        C: T.Tensor((M,), "float32"), U: T.Tensor((M, N), "uint8"), Z: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, B)) as b:
            x = T.alloc_shared((B, N), "float32")
            y = T.alloc_shared((B, N), "float32")
            w = T.alloc_shared((B,), "int32")
            holds = T.alloc_fragment((B, N), "float32")
            larger = T.alloc_fragment((B, N), "uint8")
            count = T.alloc_fragment((B,), "float32")
            T.copy(X[b * B, 0], x)
            T.copy(Y[b * B, 0], y)
            T.copy(v[b * B], w)
            for i, j in T.Parallel(B, N):
                holds[i, j] = T.cast((x[i, j] > y[i, j]) & ~(x[i, j] > 0.5), "float32")
                larger[i, j] = x[i, j] > y[i, j]
            T.reduce_sum(holds, count, dim=1)
            for i, j in T.Parallel(B, N):
                holds[i, j] = (1 - (x[i, j] > 0)) * y[i, j] + T.cast(w[i] > 0, "float32") + x[i, j] * (i >= j)
            T.copy(count, C[b * B])
            T.copy(larger, U[b * B, 0])
            T.copy(holds, Z[b * B, 0])

    return kernel


@pytest.mark.slow
def test_conditions_are_counted_stored_and_multiplied() -> None:
    v = np.arange(M, dtype=np.int32) % 3 - 1
    count, larger, z = make()(X, Y, v)
    i, j = np.arange(M)[:, None] % B, np.arange(N)
    assert np.array_equal(count, ((X > Y) & ~(X > 0.5)).sum(1))
    assert np.array_equal(larger, X > Y)
    assert np.allclose(z, (1 - (X > 0)) * Y + (v > 0)[:, None] + X * (i >= j), atol=1e-6)


def test_in_text_too() -> None:
    found = meaning(load_text(TEXT, "k.tile").instantiate(), {"X": X, "Y": Y})
    assert np.allclose(found["C"], (X > Y).sum(1) + np.where((X > 0) & (Y < 0), Y, 0).sum(1), atol=1e-5)
