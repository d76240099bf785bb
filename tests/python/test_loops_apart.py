"""A serial loop in an element loop, where each iteration keeps to its own elements."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.search.compiler import meaning

TEXT = """
@T.prim_func
def f(X: T.Tensor((8, 64), "float32"), Z: T.Tensor((8, 32), "float32")):
    with T.Kernel(1) as b:
        x = T.alloc_shared((8, 64), "float32")
        z = T.alloc_shared((8, 32), "float32")
        T.copy(X[0, 0], x)
        for i, j in T.Parallel(8, 32):
            z[i, j] = x[i, j]
            for {}:
                {}
            z[i, j] *= 0.25
        T.copy(z, Z[0, 0])
"""
X = np.random.default_rng(0).integers(-9, 9, (8, 64)).astype(np.float32)


def compiled(loop: str, body: str) -> tile_eg.jit.CompiledKernel:
    return tile_eg.compile(prim_func(TEXT.format(loop, body)), out_idx=[-1], effort="none")


def test_the_loop_goes_around_the_elements() -> None:
    made = compiled("k in T.serial(3)", "z[i, j] = z[i, j] + x[i, j + k + 1]")
    want = sum(X[:, k : k + 32] for k in range(4)) / 4
    np.testing.assert_array_equal(meaning(made.kernel, {"X": X})["Z"], want)


@pytest.mark.parametrize(("loop", "body"), [
    ("k in T.serial(i + 1)", "z[i, j] = z[i, j] + x[i, j]"), ("k in T.serial(3)", "z[i, j] = z[i, j] + z[i, 0]"),
    ("k in T.serial(3)", "z[i, 0] = z[i, 0] + x[i, j]"),
])  # fmt: skip
def test_what_differs_from_iteration_to_iteration_is_refused(loop: str, body: str) -> None:
    with pytest.raises(TileError, match="a serial loop inside T.Parallel|has to be known when the block starts"):
        compiled(loop, body)
