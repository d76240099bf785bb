"""AscendNPU-IR's words for bits, of floats: such kernels are done in the order of their statements."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
rng = np.random.default_rng(0)
TEXT = """
@T.prim_func
def f(X: T.Tensor((4, 64), "{0}"), Y: T.Tensor((4, 64), "{1}")):
    with T.Kernel(1, is_npu=True) as (cid, _):
        x = T.alloc_shared((4, 64), "{0}")
        y = T.alloc_shared((4, 64), "{1}")
        T.copy(X, x)
        {2}
        T.copy(y, Y)
"""


def run(of: str, to: str, lines: str) -> tuple[np.ndarray, np.ndarray]:
    x = rng.integers(-2000, 2000, (4, 64)).astype(f"int{np.dtype(of).itemsize * 8}").view(of)
    return x, tile_eg.compile(prim_func(TEXT.format(of, to, lines)), out_idx=[-1], target="npuir")(x)


@pytest.mark.parametrize(("of", "to"), [("float16", "int16"), ("int32", "float32")])
def test_a_buffer_becomes_one_of_another_type(of, to):
    x, y = run(of, to, f'T.npuir_bitcast(x, "{to}")\n        T.copy(x, y)')
    assert y.dtype == to and y.tobytes() == x.tobytes()


@pytest.mark.parametrize("of", ["float16", "float32"])
def test_bits_are_joined_and_turned(of):
    x, y = run(of, of, "T.vnot(x, y)\n        T.vxor(x, y, y)")
    assert y.tobytes() == b"\xff" * x.nbytes


def test_in_a_loop_a_buffer_keeps_its_type():
    with pytest.raises(TileError, match="the type of a buffer changes in a loop or branch"):
        run("float16", "int16", 'for i in T.serial(2): T.vbitcast(x, "int16")')


@pytest.mark.parametrize("operands", ["x, v, z", "v, x, z", "v, z, x"])
def test_a_view_is_the_buffer_that_it_shows(operands):
    """Steps on the way to a result do not lie in what is still read under another name."""
    text = f"""
@T.prim_func
def f(X: T.Tensor((8, 64), "int16"), Z: T.Tensor((8, 64), "int16"), Y: T.Tensor((8, 64), "int16")):
    with T.Kernel(1) as b:
        with T.Scope("V"):
            x = T.alloc_ub((8, 64), "int16")
            z = T.alloc_ub((8, 64), "int16")
            v = T.view(x, (8, 64), "int16")
            T.copy(X, x)
            T.copy(Z, z)
            T.barrier_all()
            T.tile.bitwise_xor({operands})
            T.barrier_all()
            T.copy(x, Y)
"""
    x, z = (rng.integers(-999, 999, (8, 64)).astype(np.int16) for _ in "xz")
    np.testing.assert_array_equal(tile_eg.compile(prim_func(text), out_idx=[-1])(x, z), x ^ z)
