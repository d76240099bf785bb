"""Single elements of tensors, and views of tiles, at a tensor's end in kernels that are done in order."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func

TEXT = """@T.prim_func
def f(F: T.Tensor((5,), "float32"), O: T.Tensor((5, 16), "float32")):
    with T.Kernel(3, is_npu=True) as (cid, vid):
        o = T.alloc_ub((16,), "float32")
        T.printf("")
        T.tile.fill(o, 2.0)
        BODY
        T.copy(o, O[cid * 2 + vid, 0])
"""
BODIES = {
    "a word": "T.tile.mul(o, o, F[cid * 2 + vid])",
    "an element loop": "for j in T.Parallel(16): o[j] = o[j] * F[cid * 2 + vid]",
    "a name": "a = F[cid * 2 + vid]\n        T.tile.mul(o, o, a)",
    "single elements": "for j in T.serial(16): o[j] = o[j] * F[cid * 2 + vid]",
}
AUTO = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}


@pytest.mark.slow
@pytest.mark.parametrize("how", BODIES)
def test_an_element_beyond_the_end_is_not_read(how: str) -> None:
    f = np.random.default_rng(0).uniform(1, 2, 5).astype(np.float32)
    kernel = tile_eg.jit(out_idx=[-1], pass_configs=AUTO, effort="none")(prim_func(TEXT.replace("BODY", BODIES[how])))
    np.testing.assert_allclose(kernel(f), np.repeat(2 * f, 16).reshape(5, 16), rtol=1e-6)


def test_a_view_with_the_same_rows_ends_where_its_buffer_does() -> None:
    kernel = prim_func("""@T.prim_func
def f(X: T.Tensor((50,), "float32"), O: T.Tensor((1,), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x, s = T.alloc_ub((64,), "float32"), T.alloc_ub((1,), "float32")
        T.printf("")
        T.copy(X, x)
        T.reduce_max(T.reshape(x, [1, 64]), s, dim=-1)
        T.copy(s, O)
""")
    x = np.random.default_rng(1).uniform(-2, -1, 50).astype(np.float32)
    assert tile_eg.jit(out_idx=[-1], pass_configs=AUTO, effort="none")(kernel)(x) == x.max()
