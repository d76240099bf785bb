"""Transposes in Python are those of .tile text."""

from __future__ import annotations

import numpy as np
import pytest

LINES = {
    "an attribute": "z[:, :] = (x * 2.0).T",
    "copied": "y[:, :] = x * 2.0\nT.copy(y.T, z)",
    "a tile word": "y[:, :] = x * 2.0\nT.tile.transpose(z, y)",
    "a word": "y[:, :] = x * 2.0\nT.transpose(y, z)",
    "a loop": "for i, j in T.Parallel(64, 32):\n    z[i, j] = x[j, i] * 2.0",
}
TEXT = """import tile_eg
import tile_eg.language as T

@tile_eg.jit(out_idx=[-1])
@T.prim_func
def k(X: T.Tensor((32, 64), "float32"), Z: T.Tensor((64, 32), "float32")):
    with T.Kernel(1):
        x = T.alloc_shared((32, 64), "float32")
        y = T.alloc_shared((32, 64), "float32")
        z = T.alloc_shared((64, 32), "float32")
        T.copy(X, x)
        LINES
        T.copy(z, Z)
"""


@pytest.mark.slow
@pytest.mark.parametrize("spelling", LINES)
def test_every_spelling_transposes(module_of, spelling: str) -> None:
    kernel = module_of(TEXT.replace("LINES", LINES[spelling].replace("\n", "\n        "))).k
    x = np.random.default_rng(2).integers(-9, 9, (32, 64)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x.T)
