"""A race between two instructions of one pipe is told with the barrier that orders them."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError

KERNEL = """@T.prim_func
def f(A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        a, b = T.alloc_L1((32, 64), "float16"), T.alloc_L1((64, 32), "float16")
        a0, b0 = T.alloc_L0A((32, 64), "float16"), T.alloc_L0B((64, 32), "float16")
        c = T.alloc_L0C((32, 32), "float32")
        with T.Scope("C"):
            T.copy(A, a)
            T.copy(B, b)
            T.barrier_all()
            T.copy(a, a0)
            T.copy(b, b0)
            T.barrier_all()
            T.mma(a0, b0, c, init=True)
            {between}
            T.mma(a0, b0, c, init=False)
            T.barrier_all()
            T.copy(c, C)
"""


def product(between: str) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, shape).astype(np.float16) for shape in ((32, 64), (64, 32)))
    found = tile_eg.compile(prim_func(KERNEL.format(between=between)), out_idx=[-1])(a, b)
    return np.asarray(found), 2 * (a.astype(np.float32) @ b.astype(np.float32))


def test_the_barrier_is_named() -> None:
    with pytest.raises(TileError, match='race: .*T.pipe_barrier\\("m"\\) between') as caught:
        product("pass")
    assert 'T.pipe_barrier("m") stands between them' in caught.value.help


@pytest.mark.slow
def test_with_it_the_kernel_is_right() -> None:
    np.testing.assert_allclose(*product('T.pipe_barrier("m")'), atol=1e-3)
