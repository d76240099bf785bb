"""Buffers at one address, and slots that are filled ahead, where not every path or block does the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

BLOCKS, SHAPE = 8, (16, 64)


def again(only: int | None, rows: int = 16, address: int = 0, slots: int = 1) -> Any:
    """C = 2 A + B + A, where x, which holds A, is loaded again behind y, in whose place it may be; `only` in that block."""

    @tile_eg.jit(out_idx=[-1], effort="none", schedule="search")
    def kernel() -> Any:
        @T.prim_func
        def again(A: T.Tensor((BLOCKS, *SHAPE), "float"), B: T.Tensor((BLOCKS, *SHAPE), "float"),
                  C: T.Tensor((BLOCKS, *SHAPE), "float")):  # fmt: skip
            with T.Kernel(BLOCKS, is_npu=True) as (cid, vid):
                x = T.alloc_ub((slots, *SHAPE), "float")
                y, z = T.alloc_ub(SHAPE, "float"), T.alloc_ub(SHAPE, "float")
                T.annotate_address({x: 0, y: address, z: 65536})
                with T.Scope("V"):
                    T.copy(A[cid, 0, 0], x[0, :, :])
                    T.barrier_all()
                    T.tile.add(z, x[0, :, :], x[0, :, :])
                    T.barrier_all()
                    T.copy(B[cid, 0, 0], y)
                    T.barrier_all()
                    T.tile.add(z, y, z)
                    T.barrier_all()
                    if only is None:
                        for k in T.serial(16 // rows):
                            T.copy(A[cid, k * rows, 0], x[0, k * rows : k * rows + rows, :])
                    elif cid == only:
                        T.copy(A[cid, 0, 0], x[0, :, :])
                    T.barrier_all()
                    T.tile.add(z, x[0, :, :], z)
                    T.barrier_all()
                    T.copy(z, C[cid, 0, 0])

        return again

    return kernel()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [16, 4])
def test_a_buffer_that_is_written_again_may_be_read(rows: int) -> None:
    a, b = (np.full((BLOCKS, *SHAPE), n, np.float32) for n in (1, 10))
    assert (again(None, rows)(a, b) == 13).all()


@pytest.mark.parametrize("only", [0, 5])
def test_what_one_block_alone_has_written_again_is_lost_in_the_others(only: int) -> None:
    with pytest.raises(TileError, match="`x(_1)?` is read here, and shares its memory with `y`, which was written since"):
        again(only)


def test_rows_that_were_not_written_again_are_lost() -> None:
    with pytest.raises(TileError, match="shares its memory with `y`"):
        again(None, rows=12)


def slot_behind() -> Any:
    @tile_eg.jit(out_idx=[-1], effort="none", schedule="search")
    def kernel() -> Any:
        @T.prim_func
        def main(A: T.Tensor((4, *SHAPE), "float"), B: T.Tensor(SHAPE, "float"), C: T.Tensor((4, *SHAPE), "float")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x = T.alloc_ub((2, *SHAPE), "float")
                y = T.alloc_ub(SHAPE, "float")
                T.annotate_address({x: 0, y: 4096})
                with T.Scope("V"):
                    for k in T.serial(4):
                        T.copy(A[k, 0, 0], x[k % 2, :, :])
                        T.barrier_all()
                        T.copy(B[0, 0], y)
                        T.barrier_all()
                        T.tile.add(x[k % 2, :, :], x[k % 2, :, :], y)
                        T.barrier_all()
                        T.copy(x[k % 2, :, :], C[k, 0, 0])
                        T.barrier_all()

        return main

    return kernel()


def test_the_second_slot_of_a_buffer_lies_behind_its_first_one() -> None:
    with pytest.raises(TileError, match="shares its memory with `y`"):
        slot_behind()


def filled_ahead(odd: int) -> Any:
    """C[b, i] = A[b, i], but for block `odd`, which fills both slots with A[b, 0]."""

    @tile_eg.jit(out_idx=[-1], effort="none", schedule="search")
    def kernel() -> Any:
        @T.prim_func
        def main(A: T.Tensor((BLOCKS, 3, *SHAPE), "float"), C: T.Tensor((BLOCKS, 2, *SHAPE), "float")):
            with T.Kernel(BLOCKS, is_npu=True) as (cid, vid):
                x = T.alloc_ub((2, *SHAPE), "float")
                with T.Scope("V"):
                    T.copy(A[cid, 0, 0, 0], x[0, :, :])
                    for i in T.serial(2):
                        if cid != odd:
                            T.copy(A[cid, i + 1, 0, 0], x[(i + 1) % 2, :, :])
                        if cid == odd:
                            T.copy(A[cid, 0, 0, 0], x[(i + 1) % 2, :, :])
                        T.barrier_all()
                        T.copy(x[i % 2, :, :], C[cid, i, 0, 0])
                        T.barrier_all()

        return main

    return kernel()


def test_a_block_in_the_middle_that_fills_its_slots_otherwise_is_seen() -> None:
    with pytest.raises(TileError, match="is read before it is written"):
        filled_ahead(5).compile()
