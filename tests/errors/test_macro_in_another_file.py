"""A mistake in a macro shows the line of the file that the macro stands in."""

from __future__ import annotations

import pytest

import tile_eg
from tests.python.written import defined
from tile_eg.errors import TileError

MACRO = """# half, of a tile

@T.macro
def half(y):
    T.tile.fill(y, 0.5)
"""
KERNEL = """@T.prim_func
def f(Y: T.Tensor((16, 64), "int32")):
    with T.Kernel(1) as b:
        y = T.alloc_shared((16, 64), "int32")
        half(y)
        T.copy(y, Y)
"""


def test_a_mistake_that_is_found_behind_the_reader_shows_the_macro_s_line() -> None:
    names = defined(MACRO)
    f = defined(KERNEL, half=names["half"])["f"]
    with pytest.raises(TileError) as caught:
        tile_eg.compile(f, out_idx=[-1]).compile()
    assert "0.5 is no i32" in str(caught.value)
    assert "    5 |     T.tile.fill(y, 0.5)\n" in str(caught.value)
