"""`T.reshape` and `T.view` in kernels that are kept, or done in the order of their statements: one memory with two names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

X = np.random.default_rng(0).uniform(-1, 1, (16, 64)).astype(np.float32)
KEPT = '''
import tile_eg.language as T

@T.prim_func
def main(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "{dtype}")):
    with T.Kernel(2, is_npu=True) as (cid, vid):
        x = T.alloc_ub((4, 64), "float32")
        y = T.alloc_ub((4, 64), "{dtype}")
        with T.Scope("V"):
            T.copy(X[cid * 8 + vid * 4, 0], x)
            T.barrier_all()
            {body}
            T.barrier_all()
            T.copy({out}, Y[cid * 8 + vid * 4, 0])
'''


def kernel(module_of: Callable[[str], Any], *body: str, out: str = "x", dtype: str = "float32") -> Any:
    text = KEPT.format(body="\n            ".join(body), out=out, dtype=dtype)
    return tile_eg.jit(out_idx=[-1])(module_of(text).main)


@pytest.mark.slow
def test_what_is_written_by_one_name_is_read_by_the_other(module_of: Callable[[str], Any]) -> None:
    made = kernel(module_of, "f = T.reshape(x, (256,))", "T.tile.add(f, f, 1.0)")
    assert (made(X) == X + 1).all()


def test_a_view_has_the_bits_as_another_element_type(module_of: Callable[[str], Any]) -> None:
    made = kernel(module_of, 'b = T.view(x, dtype="int32")', "T.tile.add(b, b, 1)", out="b", dtype="int32")
    assert (made(X) == X.view(np.int32) + 1).all()


@pytest.mark.slow
def test_elements_of_a_view_of_three_dimensions(module_of: Callable[[str], Any]) -> None:
    made = kernel(module_of, "v = T.view(x, (2, 2, 64))", "for i in range(2):", "    T.tile.mul(v[i, :, :], v[i, :, :], 3.0 + i)")
    assert np.allclose(made(X).reshape(4, 2, 2, 64), X.reshape(4, 2, 2, 64) * np.array([3, 4], np.float32)[:, None, None])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("f = T.reshape(x, (255,))", "x has 1024 bytes, and 255 of f32 are 1020"),
        ("f = T.reshape(x[0:2, :], (128,))", "take a whole buffer in UB"),
        ("f = T.reshape(x, (256,)); T.annotate_address({f: 0})", "is a view, and lies where x does"),
        ("f = T.view(x, (2, 128))\n            for i, j in T.Parallel(2, 64):\n                f[i, j] = x[i, j]", "same memory"),
    ],
)
def test_what_is_no_view_is_refused(module_of: Callable[[str], Any], body: str, said: str) -> None:
    with pytest.raises(TileError, match=said):
        kernel(module_of, body)(X)


@tile_eg.jit(out_idx=[-1])
def turned(rows: int, reduced: bool) -> Any:
    """Searched kernels have no view of other bits, so that these are done in order; the last block is cut off."""

    @T.prim_func
    def main(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "int32")):
        with T.Kernel(T.ceildiv(rows, 8)) as cid:
            x = T.alloc_shared((8, 64), "float32")
            m = T.alloc_shared((64,), "float32")
            T.copy(X[cid * 8, 0], x)
            b = T.view(x, (8, 64), "int32")
            T.tile.add(b, b, 2)
            if reduced:
                T.reduce_max(x, m, dim=0)
            T.copy(b, Y[cid * 8, 0])

    return main


@pytest.mark.slow
def test_a_kernel_that_is_searched_falls_back_to_its_order() -> None:
    with pytest.warns(UserWarning, match="no form for the same bits as another dtype"):
        assert (turned(12, False)(X[:12]) == X[:12].view(np.int32) + 2).all()


@pytest.mark.slow
def test_what_exists_of_memory_with_two_names_of_the_same_rows_is_followed() -> None:
    with pytest.warns(UserWarning, match="no form for the same bits as another dtype"):
        assert (turned(12, True)(X[:12]) == X[:12].view(np.int32) + 2).all()
