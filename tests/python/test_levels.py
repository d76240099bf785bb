"""Levels, layouts and orders of tiles in a kernel whose places and order are found: they change no number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.intrinsics import make_nz_layout, make_zn_layout
from tile_eg.ir.kernel import Alloc, Kernel

RNG = np.random.default_rng(0)
A, B = (RNG.uniform(-1, 1, (64, 64)).astype(np.float16) for _ in range(2))


def product_of(words) -> Kernel:
    left, right, result = words

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(4) as cid:
            a = left((32, 64), "float16")
            b = right((64, 32), "float16")
            c = result((32, 32), "float32")
            T.copy(A[cid // 2 * 32, 0], a)
            T.copy(B[0, cid % 2 * 32], b)
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, C[cid // 2 * 32, cid % 2 * 32])

    return tile_eg.compile(main).kernel


def test_a_kernel_with_levels_is_the_one_without_but_for_its_places() -> None:
    levels = product_of((T.alloc_L1, T.alloc_L1, T.alloc_L0C))
    assert [s.level for s in levels.body if isinstance(s, Alloc)] == ["L1", "L1", "L0C"]
    open_body = tuple(replace(s, level="") if isinstance(s, Alloc) else s for s in levels.body)
    assert replace(levels, body=open_body) == product_of((T.alloc_shared, T.alloc_shared, T.alloc_fragment))


@T.prim_func
def through_l0(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, _):
        a = T.alloc_L1((64, 64), "float16")
        b = T.alloc_L1((64, 64), "float16")
        left = T.alloc_L0A((64, 64), "float16")
        right = T.alloc_L0B((64, 64), "float16")
        c = T.alloc_L0C((64, 64), "float32")
        T.annotate_layout({a: make_zn_layout(a), b: make_nz_layout(b)})
        T.copy(A[0, 0], a)
        T.copy(B[0, 0], b)
        T.copy(a, left)
        T.copy(b, right)
        T.mma(left, right, c, init=True)
        T.copy(c, C[0, 0])


@pytest.mark.slow
def test_a_product_by_hand_of_tiles_in_l0() -> None:
    assert np.allclose(tile_eg.compile(through_l0, out_idx=[-1])(A, B), A.astype(np.float32) @ B.astype(np.float32), atol=1e-3)


# ---- Persistent ------------------------------------------------------------------------------------------------


def doubled(blocks: int, wave: int):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(blocks, is_npu=True) as (cid, _):
            a = T.alloc_ub((32, 16), "float16")
            for bx, by in T.Persistent([2, 4], wave, cid):
                T.copy(A[bx * 32, by * 16], a)
                a[:, :] = a * 2.0
                T.copy(a, C[bx * 32, by * 16])

    return main


@pytest.mark.parametrize("blocks", [1, 3, 8, 24])
def test_the_tiles_of_persistent_are_the_grid_whatever_the_number_of_blocks(blocks: int) -> None:
    assert tile_eg.compile(doubled(blocks, blocks)).kernel.grid == (("bx", 2), ("by", 4))


@pytest.mark.slow
def test_every_tile_of_persistent_is_done() -> None:
    assert (tile_eg.compile(doubled(3, 3), out_idx=[-1])(A) == A * 2).all()


def test_another_number_of_blocks_would_do_tiles_twice_or_never() -> None:
    with pytest.raises(TileError, match="shares 8 tiles among 4 blocks, and there are 3"):
        tile_eg.compile(doubled(3, 4))


def test_the_block_has_no_meaning_beside_its_tiles() -> None:
    @T.prim_func
    def main(C: T.Tensor((64,), "float32")):
        with T.Kernel(2) as cid:
            c = T.alloc_ub((16,), "float32")
            for bx in T.Persistent([4], 2, cid):
                T.fill(c, cid)
                T.copy(c, C[bx * 16])

    with pytest.raises(TileError, match="`cid` is used beside T.Persistent"):
        tile_eg.compile(main)


def test_nothing_is_carried_from_tile_to_tile() -> None:
    @T.prim_func
    def main(C: T.Tensor((64,), "float32")):
        with T.Kernel(2) as cid:
            c = T.alloc_ub((16,), "float32")
            T.clear(c)
            for bx in T.Persistent([4], 2, cid):
                c[:] = c + 1.0
                T.copy(c, C[bx * 16])

    with pytest.raises(TileError, match="`c` is carried from tile to tile"):
        tile_eg.compile(main)


@pytest.mark.slow
def test_what_all_tiles_have_in_common_stands_before_them() -> None:
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(2) as cid:
            a = T.alloc_ub((16,), "float32")
            T.copy(A[0], a)
            for bx in T.Persistent([4], 2, cid):
                T.copy(a, C[bx * 16])

    x = np.arange(16, dtype=np.float32)
    assert (tile_eg.compile(main, out_idx=[-1])(x) == np.tile(x, 4)).all()


# ---- use_swizzle ------------------------------------------------------------------------------------------------


def swizzled(of: str):
    @T.prim_func
    def main(C: T.Tensor((64, 64), "float32")):
        with T.Kernel(8) as cid:
            block = T.use_swizzle(cid, 64, 64, 64, 32, 16, off=3)
            c = T.alloc_ub((32, 16), "float32")
            T.fill(c, block if of == "block" else cid)
            T.copy(c, C[block // 4 * 32, block % 4 * 16])

    return main


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*the order of blocks is found")
def test_a_swizzled_index_names_every_tile_once() -> None:
    tiles = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert (tile_eg.compile(swizzled("block"), out_idx=[-1])() == np.kron(tiles, np.ones((32, 16)))).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*each tile has the index that T.use_swizzle gives")
def test_beside_the_index_before_the_swizzle_each_tile_has_its_own() -> None:
    places = np.argsort([0, 4, 1, 5, 2, 6, 3, 7]).reshape(2, 4)  # one band of both rows, column by column
    assert (tile_eg.compile(swizzled("cid"), out_idx=[-1])() == np.kron(places, np.ones((32, 16)))).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_tensor_of_one_dimension_is_the_first_row_of_a_tile(dtype: str) -> None:
    @T.prim_func
    def main(x: T.Tensor((96,), dtype), A: T.Tensor((80, 96), dtype), y: T.Tensor((80,), "float32")):
        with T.Kernel(3) as cid:
            a = T.alloc_L1((32, 64), dtype)
            v = T.alloc_L1((16, 64), dtype)
            c = T.alloc_L0C((16, 32), "float32")
            for k in T.serial(2):
                T.copy(x[k * 64], v)
                T.copy(A[cid * 32, k * 64], a)
                T.gemm_v0(v, a, c, transpose_B=True, init=(k == 0))
            T.copy(c, y[cid * 32])

    rng = np.random.default_rng(0)
    x, a = rng.uniform(-1, 1, 96).astype(dtype), rng.uniform(-1, 1, (80, 96)).astype(dtype)
    wanted = a.astype(np.float32) @ x.astype(np.float32)
    np.testing.assert_allclose(tile_eg.compile(main, out_idx=[-1])(x, a), wanted, rtol=1e-3, atol=1e-4)
