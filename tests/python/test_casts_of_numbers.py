"""Casts to short floats within what the scalar unit computes, in kernels that are kept: rounded where they stand."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.frontend.ssa.rounding import rounded
from tile_eg.ops.types import BF16

N = 64
A = np.random.default_rng(0).normal(size=N).astype(np.float32)
H = A.astype(np.float16)


def scaled(dtype: str, out: str, chosen: bool = False):
    @tile_eg.jit(out_idx=[-1])
    def made():
        @T.prim_func
        def main(A: T.Tensor((N,), "float32"), Y: T.Tensor((N,), out)):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a, y = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), out)
                T.printf("")
                T.copy(A, a)
                T.tile.fill(y, 0.0)
                for i in T.serial(N):
                    if chosen:
                        y[i] = T.if_then_else(a[i] > 0.0, T.cast(a[i], dtype) * 3.0, 0.5)
                    else:
                        y[i] = T.cast(T.cast(a[i], dtype) * 3.0, out)
                T.copy(y, Y)

        return main

    return made()


@pytest.mark.slow
def test_f16_within_an_expression_is_rounded_there():
    np.testing.assert_array_equal(scaled("float16", "float16")(A), H * np.float16(3))
    np.testing.assert_array_equal(scaled("float16", "float32")(A), H.astype(np.float32) * 3)


@pytest.mark.slow
def test_f16_in_an_arm_of_a_choice():
    np.testing.assert_array_equal(scaled("float16", "float32", chosen=True)(A), np.where(A > 0, H.astype(np.float32) * 3, 0.5))


def test_bf16_is_rounded_by_the_vector_unit():
    with pytest.warns(Warning, match="cast to bfloat16 of a number is made by vector instructions"):
        found = scaled("bfloat16", "float32")(A)
    np.testing.assert_array_equal(found, np.array([rounded(float(x), BF16) for x in A], np.float32) * 3)


def test_a_number_that_is_stored_as_f16_is_rounded_once():
    assert "static_cast<half>((static_cast<float>(static_cast<half>(" in scaled("float16", "float16").get_kernel_source()
