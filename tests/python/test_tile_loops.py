"""Loops in which each block takes tiles as long as there are some."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

A = np.random.default_rng(0).uniform(-1, 1, (80, 64)).astype(np.float32)


def doubled(blocks: int):
    @T.prim_func
    def main(A: T.Tensor((80, 64), "float32"), C: T.Tensor((80, 64), "float32")):
        with T.Kernel(blocks) as cid:
            a = T.alloc_shared((16, 32), "float32")
            for i in T.serial(T.ceildiv(10, blocks)):
                tile = i * blocks + cid
                if tile < 10:
                    T.copy(A[tile // 2 * 16, tile % 2 * 32], a)
                    a[:, :] = a * 2.0
                    T.copy(a, C[tile // 2 * 16, tile % 2 * 32])

    return tile_eg.compile(main, out_idx=[-1])


@pytest.mark.parametrize("blocks", [3, 4, 7])
def test_the_tiles_are_the_grid(blocks: int) -> None:
    assert doubled(blocks).kernel.grid == (("cid", 10),)


@pytest.mark.slow
def test_every_tile_is_done_once() -> None:
    assert (doubled(4)(A) == A * 2).all()


def test_the_tiles_are_those_of_any_number_of_blocks() -> None:
    assert doubled(3).kernel.body == doubled(7).kernel.body


@pytest.mark.slow
def test_the_block_and_the_trip_may_be_used_beside_the_tile() -> None:
    @T.prim_func
    def main(C: T.Tensor((10, 16), "float32")):
        with T.Kernel(4) as cid:
            c = T.alloc_shared((16,), "float32")
            for i in T.serial(3):
                if i * 4 + cid < 10:
                    T.fill(c, 100 * i + cid)
                    T.copy(c, C[i * 4 + cid, :])

    wanted = [100 * (t // 4) + t % 4 for t in range(10)]
    assert (tile_eg.compile(main, out_idx=[-1])() == np.array(wanted, np.float32)[:, None]).all()


def test_nothing_goes_on_from_tile_to_tile() -> None:
    @T.prim_func
    def main(C: T.Tensor((10, 16), "float32")):
        with T.Kernel(4) as cid:
            c = T.alloc_shared((16,), "float32")
            T.clear(c)
            for i in T.serial(3):
                if i * 4 + cid < 10:
                    c[:] = c + 1.0
                    T.copy(c, C[i * 4 + cid, :])

    with pytest.raises(TileError, match="`c` goes on from tile to tile"):
        tile_eg.compile(main)


@pytest.mark.slow
def test_a_buffer_that_each_tile_fills_anew_does_not_go_on() -> None:
    @T.prim_func
    def main(A: T.Tensor((10, 16), "float32"), C: T.Tensor((10, 16), "float32")):
        with T.Kernel(4) as cid:
            a = T.alloc_shared((16,), "float32")
            c = T.alloc_shared((16,), "float32")
            zero = T.alloc_shared((16,), "float32")
            T.clear(c)
            T.clear(zero)
            for i in T.serial(3):
                if i * 4 + cid < 10:
                    T.copy(A[i * 4 + cid, :], a)
                    T.tile.sub(c, zero, a)
                    T.tile.mul(c, c, a)
                    T.copy(c, C[i * 4 + cid, :])

    a = np.random.default_rng(1).uniform(-1, 1, (10, 16)).astype(np.float32)
    assert (tile_eg.compile(main, out_idx=[-1])(a) == -a * a).all()


def test_tiles_in_turn_may_be_in_another_order() -> None:
    @T.prim_func
    def main(A: T.Tensor((80, 64), "float32"), C: T.Tensor((80, 64), "float32")):
        with T.Kernel(3) as cid:
            a = T.alloc_shared((16, 32), "float32")
            for i in T.serial(T.ceildiv(10, 3)):
                tile = i * 3 + cid
                if tile < 10:
                    at = T.use_swizzle(tile, 80, 64, 64, 16, 32, off=3, in_loop=True)
                    T.copy(A[at // 2 * 16, at % 2 * 32], a)
                    a[:, :] = a * 2.0
                    T.copy(a, C[at // 2 * 16, at % 2 * 32])

    assert tile_eg.compile(main, out_idx=[-1]).kernel.body == doubled(3).kernel.body


BANDS_OF_THREE = [0, 2, 4, 1, 3, 5, 7, 9, 6, 8]
"""The tiles of 5 rows and 2 columns in bands of three rows, each other band backwards."""


def beside(of: str, guard: str = "tile"):
    @T.prim_func
    def main(A: T.Tensor((80, 64), "float32"), B: T.Tensor((10, 32), "float32"), C: T.Tensor((80, 64), "float32")):
        with T.Kernel(3) as cid:
            a = T.alloc_shared((16, 32), "float32")
            b = T.alloc_shared((1, 32), "float32")
            for i in T.serial(4):
                tile = i * 3 + cid
                at = T.use_swizzle(tile, 80, 64, 64, 16, 32, off=3, in_loop=True)
                if (tile if guard == "tile" else at) < 10:
                    T.copy(A[at // 2 * 16, at % 2 * 32], a)
                    T.copy(B[tile if of == "tile" else at, 0], b)
                    for r, j in T.Parallel(16, 32):
                        a[r, j] = a[r, j] * b[0, j]
                    T.copy(a, C[at // 2 * 16, at % 2 * 32])

    return tile_eg.compile(main, out_idx=[-1])


@pytest.mark.slow
@pytest.mark.parametrize("of", ["tile", "at"])
@pytest.mark.filterwarnings("ignore:.*T.use_swizzle gives")
def test_the_plain_index_beside_the_other_order_is_that_of_the_same_turn(of: str) -> None:
    b = np.random.default_rng(1).uniform(-1, 1, (10, 32)).astype(np.float32)
    factors = np.empty((5, 2, 32), np.float32)
    for place, at in enumerate(BANDS_OF_THREE):
        factors[at // 2, at % 2] = b[place if of == "tile" else at]
    wanted = A.reshape(5, 16, 64) * factors.reshape(5, 1, 64)
    assert (beside(of)(A, b) == wanted.reshape(80, 64)).all()


def test_an_order_that_nothing_goes_by_is_found() -> None:
    (told,) = {n.text for n in beside("at").kernel.notes}
    assert told == "the order of blocks is found: T.use_swizzle gives the tile's own index"


def test_the_condition_for_a_tile_may_be_one_for_its_index_in_the_other_order() -> None:
    assert beside("at", "at").kernel.grid == (("cid", 10),)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*T.use_swizzle gives")
def test_an_order_of_more_tiles_than_are_done_is_kept() -> None:
    @T.prim_func
    def main(C: T.Tensor((12, 16), "float32")):
        with T.Kernel(3) as cid:
            c = T.alloc_shared((16,), "float32")
            for i in T.serial(4):
                tile = i * 3 + cid
                if tile < 10:
                    at = T.use_swizzle(tile, 96, 64, 64, 16, 32, off=3)
                    T.fill(c, 1.0)
                    T.copy(c, C[at, :])

    done = np.zeros((12, 16), np.float32)
    tile_eg.compile(main)(done)
    assert [*np.flatnonzero(done[:, 0] == 0)] == [8, 10]  # 0, 2, 4, 1, 3, 5 and backwards 7, 9, 11, 6, 8, 10: the last two
