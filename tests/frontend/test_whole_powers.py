"""Powers of whole numbers, and the quotients that AscendNPU-IR's word makes of them."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.search.compiler import meaning

TEXT = """
@T.prim_func
def f(X: T.Tensor((64,), "{0}"), N: T.Tensor((64,), "{0}"), Y: T.Tensor((64,), "{0}")):
    with T.Kernel(1) as b:
        x = T.alloc_shared((64,), "{0}")
        n = T.alloc_shared((64,), "{0}")
        y = T.alloc_shared((64,), "{0}")
        T.copy(X, x)
        T.copy(N, n)
        {1}
        T.copy(y, Y)
"""
rng = np.random.default_rng(0)
POWERS = "for i in T.Parallel(64): y[i] = x[i] ** n[i]"


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("line", "want"), [
    (POWERS, lambda x, n: x**n),
    ("T.vpow(x, n, y)", lambda x, n: x**n),
    ("for i in T.Parallel(64): y[i] = x[i] ** 6 - n[i] ** 0", lambda x, n: x**6 - 1),
    ("T.vdiv(x, n, y)", lambda x, n: x // n),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8"])
def test_it_keeps_the_bits_that_fit(line, want, dtype):
    kernel = tile_eg.compile(prim_func(TEXT.format(dtype, line)), out_idx=[-1]).kernel
    x, n = rng.integers(0 if dtype == "uint8" else -6, 7, 64).astype(dtype), rng.integers(1, 9, 64).astype(dtype)
    np.testing.assert_array_equal(meaning(kernel, {"X": x, "N": n})["Y"], want(x, n))


@pytest.mark.slow
def test_it_runs():
    x, n = rng.integers(-6, 7, 64).astype(np.int32), rng.integers(0, 32, 64).astype(np.int32)
    y = tile_eg.compile(prim_func(TEXT.format("int32", POWERS)), out_idx=[-1])(x, n)
    np.testing.assert_array_equal(y, x**n)


def test_an_exponent_that_makes_a_fraction_is_told():
    with pytest.raises(TileError, match="a power of whole numbers is 0 to 31 here, not -1"):
        tile_eg.compile(prim_func(TEXT.format("int32", "for i in T.Parallel(64): y[i] = x[i] ** -1")), out_idx=[-1])
