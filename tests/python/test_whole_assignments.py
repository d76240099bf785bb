"""`y[:, :] = x * 2.0` in a kernel that is kept: vector instructions, as `T.Parallel` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
from tile_eg.errors import TileError

X = np.random.default_rng(0).uniform(-1, 1, (16, 64)).astype(np.float32)
HALF = np.full_like(X, 0.5)
ROWS = X.reshape(4, 4, 64)
KEPT = '''
import tile_eg.language as T

@T.prim_func
def main(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(2, is_npu=True) as (cid, vid):
        x = T.alloc_ub((4, 64), "float32")
        y = T.alloc_ub((4, 64), "float32")
        with T.Scope("V"):
            T.copy(X[cid * 8 + vid * 4, 0], x)
            T.tile.fill(y, 0.5)
            T.barrier_all()
            {body}
            T.barrier_all()
            T.copy(y, Y[cid * 8 + vid * 4, 0])
'''


def kernel(module_of: Callable[[str], Any], body: str) -> Any:
    return tile_eg.jit(out_idx=[-1])(module_of(KEPT.format(body=body)).main)


@pytest.mark.slow
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[...] = x * 2.0 + 1.0", X * 2 + 1),
        ("y[:, :] = x[:, 0:1] + x", X[:, :1] + X),
        ("y[:, :] = x[0:1, :] * x", (ROWS[:, :1] * ROWS).reshape(X.shape)),
        ("y[:, 0:32] = T.max(x[:, 32:64], 0.0)", np.concatenate([np.maximum(X[:, 32:], 0), HALF[:, 32:]], 1)),
        ("y[:, :] = T.if_then_else(x > 0.0, x, y)", np.where(X > 0, X, HALF)),
        ("y[:, :] = y + cid", HALF + np.repeat([0, 1], 8)[:, None]),
    ],
)
def test_a_buffer_is_computed_element_by_element(module_of: Callable[[str], Any], body: str, expected: np.ndarray) -> None:
    assert np.allclose(kernel(module_of, body)(X), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("y[:, :] = x[:, 0:32]", "the target has 4 x 64 elements, and x has 4 x 32"),
        ("y[1:4, :] = y[0:3, :] + 1.0", "y is written and read"),
        ("y[:, :] = x @ y", "not computed element by element"),
    ],
)
def test_what_is_no_such_value_is_refused(module_of: Callable[[str], Any], body: str, said: str) -> None:
    with pytest.raises(TileError, match=said):
        kernel(module_of, body)(X)
