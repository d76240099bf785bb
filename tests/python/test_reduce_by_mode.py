"""`T.reduce` with its mode as an argument, as AscendNPU-IR's and TileLang's authors write it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.python.written import defined
from tile_eg.errors import TileError

TEXT = """
@tile_eg.jit(out_idx=[-1], effort="none")
@T.prim_func
def f(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 1), "float32")):
    with T.Kernel(1) as b:
        x = T.alloc_ub([16, 64], "float32")
        m = T.alloc_ub([16, 1], "float32")
        T.copy(X[0, 0], x)
        T.reduce(x, m, {})
        T.copy(m, Y[0, 0])
"""
X = np.random.default_rng(0).integers(-9, 9, (16, 64)).astype(np.float32)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [('dims=[1], reduce_mode="max"', X.max(1)), ('[1], "abssum"', np.abs(X).sum(1)), ('"min", 1, True', X.min(1))],
)
@pytest.mark.slow(but=1)
def test_the_mode_may_be_an_argument(arguments: str, want: np.ndarray) -> None:
    np.testing.assert_array_equal(defined(TEXT.format(arguments))["f"](X)[:, 0], want)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [('dims=[1], reduce_mode="prod"', "no mode str 'prod'"), ('dims=[0, 1], reduce_mode="sum"', "takes one axis")],
)
def test_what_it_cannot_do_is_told(arguments: str, message: str) -> None:
    with pytest.raises(TileError, match=message):
        defined(TEXT.format(arguments))["f"].compile()


@pytest.mark.slow
def test_a_buffer_of_bool_holds_a_mask() -> None:
    text = TEXT.replace('T.reduce(x, m, {})', 'p = T.alloc_ub([16, 64], "bool")\n'
                        '        z = T.alloc_ub([16, 64], "float32")\n        T.clear(z)\n        T.vcmp(x, z, p, "gt")\n'
                        '        T.vselect(p, x, z, x)\n        T.reduce(x, m, dims=[1], reduce_mode="sum")')  # fmt: skip
    np.testing.assert_array_equal(defined(text)["f"](X)[:, 0], np.maximum(X, 0).sum(1))
