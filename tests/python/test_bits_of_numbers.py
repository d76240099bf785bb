"""Bits of single elements, which the scalar unit computes in a kernel that is kept."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError


@T.prim_func
def bits(A: T.Tensor((16,), "int32"), C: T.Tensor((5, 16), "int32")):
    with T.Kernel(1) as _:
        a, c = T.alloc_ub((16,), "int32"), T.alloc_ub((5, 16), "int32")
        T.copy(A, a)
        T.barrier_all()
        for i in T.serial(16):
            c[0, i] = a[i] & a[15 - i]
            c[1, i] = a[i] | a[15 - i]
            c[2, i] = a[i] ^ a[15 - i]
            c[3, i] = a[i] << 2
            c[4, i] = a[i] >> 1
        T.barrier_all()
        T.copy(c, C)


@T.prim_func
def bits_of_floats(A: T.Tensor((16,), "float32"), C: T.Tensor((16,), "float32")):
    with T.Kernel(1) as _:
        a = T.alloc_ub((16,), "float32")
        T.copy(A, a)
        T.barrier_all()
        a[0] = a[1] & a[2]
        T.barrier_all()
        T.copy(a, C)


def test_bits_of_elements_are_bits() -> None:
    x = np.arange(-8, 8, dtype=np.int32) * 7
    want = np.stack([x & x[::-1], x | x[::-1], x ^ x[::-1], x << 2, x >> 1])
    np.testing.assert_array_equal(tile_eg.compile(bits, out_idx=[-1])(x), want)


def test_bits_are_of_whole_numbers() -> None:
    with pytest.raises(TileError, match="`&` works on the bits of whole numbers, not on floats") as caught:
        tile_eg.compile(bits_of_floats, out_idx=[-1])
    assert caught.value.span is not None
