"""Sizes that an author leaves to the search, in `.tile` text and in Python."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.jit import TileKernel

DOUBLE = """
kernel double[M=64, BM=auto, H=BM * 2](X: f32[M, 32]) -> Y: f32[M, 32] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, 32]
  x = X[bx*BM, 0]
  Y[bx*BM, 0] = x + x
}
"""


def test_a_size_that_is_auto_is_left_open():
    kernel = load_text(DOUBLE).instantiate()
    assert isinstance(kernel, OpenKernel) and kernel.open == ("BM",)


def test_a_number_takes_the_place_of_auto():
    kernel = load_text(DOUBLE).instantiate({"BM": 32})
    assert type(kernel) is Kernel and kernel.grid == (("bx", 2),)


def test_auto_takes_the_place_of_a_number():
    kernel = load_text(DOUBLE.replace("BM=auto", "BM=32")).instantiate({"BM": "auto"})
    assert isinstance(kernel, OpenKernel)


def test_the_kernel_is_built_at_any_sizes():
    kernel = load_text(DOUBLE).instantiate({"M": 128})
    assert kernel.build({"BM": 16}).grid == (("bx", 8),)


def test_kernels_that_differ_in_what_is_open_are_not_equal():
    text = load_text(DOUBLE)
    assert text.instantiate() == text.instantiate() != text.instantiate({"BM": 64})


def test_the_size_of_a_tensor_cannot_be_left_open():
    with pytest.raises(TileError, match="`M` is auto, and the shape of `X` depends on it") as caught:
        load_text(DOUBLE).instantiate({"M": "auto"})
    assert caught.value.span and "give M a number" in caught.value.help


def test_an_unknown_size_cannot_be_left_open():
    with pytest.raises(TileError, match="no size called `BX`"):
        load_text(DOUBLE).instantiate({"BX": "auto"})


def test_a_kernel_of_open_sizes_says_so():
    assert "BM=auto" in repr(TileKernel(load_text(DOUBLE)))


@pytest.mark.slow
def test_a_kernel_of_open_sizes_runs_on_arrays():
    x = np.ones((40, 32), np.float32)
    np.testing.assert_array_equal(TileKernel(load_text(DOUBLE))(x), 2 * x)


@tile_eg.jit(out_idx=[-1])
def double(M, block_M=T.auto, width=32):
    @T.prim_func
    def double(X: T.Tensor((M, width), "float32"), Y: T.Tensor((M, width), "float32")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            x = T.alloc_shared((block_M, width), "float32")
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, width):
                x[i, j] = x[i, j] + x[i, j]
            T.copy(x, Y[bx * block_M, 0])

    return double


def test_a_parameter_that_is_auto_by_default_is_left_open():
    assert double(64).kernel.open == ("block_M",)


def test_a_parameter_may_be_given_as_auto_by_position_or_name():
    assert double(64, T.auto).kernel.open == double(64, block_M="auto").kernel.open == ("block_M",)


def test_a_parameter_that_is_given_is_not_left_open():
    assert type(double(64, 32).kernel) is Kernel


def test_a_parameter_that_shapes_a_tensor_cannot_be_left_open():
    with pytest.raises(TileError, match="`width` is auto, and the shape of `X` depends on it"):
        double(64, 32, "auto")


@pytest.mark.slow
def test_a_python_kernel_of_open_sizes_runs_on_arrays():
    x = np.ones((40, 32), np.float32)
    np.testing.assert_array_equal(double(40)(x), 2 * x)
