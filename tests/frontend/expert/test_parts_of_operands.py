"""Words of kept kernels whose operands are parts of one another's size: what does not fit is told, and nothing is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError


def done(word: Callable[[Any, Any], None], dtype: str = "int16", to: str = "int16") -> Any:
    """y = word(x) of 2 x 64 elements; y begins as zeros."""

    @T.prim_func
    def main(X: T.Tensor((2, 64), dtype), Y: T.Tensor((2, 64), to)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, y = T.alloc_ub((2, 64), dtype), T.alloc_ub((2, 64), to)
            with T.Scope("V"):
                T.copy(X, x)
                T.copy(Y, y)
                T.barrier_all()
                word(y, x)
                T.barrier_all()
                T.copy(y, Y)

    return tile_eg.compile(main)


@T.macro
def one_of_many(y: Any, x: Any):
    T.tile.bitwise_xor(y[0, 0:1], x, x)


@T.macro
def cast_in_steps(y: Any, x: Any):
    T.tile.cast(y[0, 0:32], x[0, 0:32], "CAST_RINT", 32)


@T.macro
def cast_of_some(y: Any, x: Any):
    T.tile.cast(y, x, "CAST_RINT", 32)


@T.macro
def cast_of_more(y: Any, x: Any):
    T.tile.cast(y, x, "CAST_RINT", 256)


@T.macro
def wider(y: Any, x: Any):
    T.reduce_sum(x, y[0, :], dim=-1, real_shape=[1, 128])


@T.macro
def empty(y: Any, x: Any):
    T.reduce_sum(x, y[0, :], dim=-1, real_shape=[])


def test_an_operand_is_not_cut_to_one_element() -> None:
    with pytest.raises(TileError, match="the operands differ in size: 1, 2 x 64"):
        done(one_of_many)


@pytest.mark.slow
def test_a_count_of_a_cast_in_steps_is_told_with_slices_that_do_it() -> None:
    with pytest.raises(TileError, match=r"slice both buffers: dst\[0:32\], src\[0:32\]"):
        done(cast_of_some, to="int8")
    x, y = np.arange(128, dtype=np.int16).reshape(2, 64), np.zeros((2, 64), np.int8)
    done(cast_in_steps, to="int8")(x, y)
    assert (y[0] == np.where(np.arange(64) < 32, np.arange(64), 0)).all() and not y[1].any()


def test_a_count_beyond_the_end_is_told() -> None:
    with pytest.raises(TileError, match="a count of 256 is not a part of 128 elements"):
        done(cast_of_more, to="int8")


@pytest.mark.parametrize(("word", "shape"), [(wider, r"\[1, 128\]"), (empty, r"\[\]")])
def test_a_real_shape_lies_in_its_buffer(word: Callable[[Any, Any], None], shape: str) -> None:
    with pytest.raises(TileError, match=rf"real_shape {shape} is not part of 2 x 64 elements"):
        done(word, "float", "float")


@T.macro
def half_of(y: Any, x: Any):
    T.tile.mul(y, x, 0.5)


@T.macro
def half_everywhere(y: Any, x: Any):
    T.tile.fill(y, 0.5)


@T.macro
def not_above(y: Any, x: Any):
    T.tile.clamp_max(y, x, 2.5)


@T.macro
def or_half(y: Any, x: Any):
    mask = T.alloc_ub((16,), "uint8")
    T.tile.fill(mask, 0)
    T.tile.select(y, mask, x, 0.5, "VSEL_TENSOR_SCALAR_MODE")


@T.macro
def large_byte(y: Any, x: Any):
    T.tile.fill(y, 300)


@T.macro
def one_less(y: Any, x: Any):
    T.tile.sub(y, x, 1)


@pytest.mark.parametrize("word", [half_of, half_everywhere, not_above, or_half])
def test_a_number_that_whole_numbers_do_not_hold_is_told(word: Callable[[Any, Any], None]) -> None:
    with pytest.raises(TileError, match="0.5 is no i32|2.5 is no i32"):
        done(word, "int32", "int32")


def test_a_number_beyond_the_range_of_a_type_is_told() -> None:
    with pytest.raises(TileError, match="300 is no u8, which holds whole numbers from 0 to 255"):
        done(large_byte, "uint8", "uint8")


@pytest.mark.slow
def test_numbers_without_a_sign_are_made_smaller() -> None:
    x, y = np.arange(1, 129, dtype=np.uint32).reshape(2, 64), np.zeros((2, 64), np.uint32)
    done(one_less, "uint32", "uint32")(x, y)
    assert (y == x - 1).all()
