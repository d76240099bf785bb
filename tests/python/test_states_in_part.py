"""What a loop leaves in buffers of which a tensor takes no more than a part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = [pytest.mark.slow(but=1), pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")]


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def powers(store: bool) -> Any:
    """A padded tile that each trip squares and whose rows' largest numbers it keeps; the last rows of both have no place."""

    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def main(A: T.Tensor((21, 40), "float32"), Y: T.Tensor((21, 40), "float32"), V: T.Tensor((21,), "float32")):
        with T.Kernel(2, threads=2, is_npu=True) as cid:
            z, u = T.alloc_shared((16, 32), "float32"), T.alloc_shared((16,), "float32")
            T.copy(A[cid * 16, 0], z, pad_value=1.5)
            for j in T.serial(2):
                T.tile.mul(z, z, z)
                T.reduce_max(z, u, dim=1)
                if store:
                    T.copy(z, Y[cid * 16, j * 32])
            if not store:
                T.copy(z, Y[cid * 16, 0])
                T.copy(z, Y[cid * 16, 32])
            T.copy(u, V[cid * 16])

    return main


@pytest.mark.slow
@pytest.mark.parametrize("store", [True, False])
def test_rows_that_have_no_place_are_not_stored(store: bool) -> None:
    a = drawn(21, 40)
    last = a[:, :32] ** 4
    found, largest = powers(store)(a)
    np.testing.assert_allclose(found[:, 32:], last[:, :8], rtol=1e-5)
    np.testing.assert_allclose(found[:, :32], a[:, :32] ** 2 if store else last, rtol=1e-5)
    np.testing.assert_allclose(largest, last.max(1), rtol=1e-5)


def test_a_tile_that_goes_on_from_trip_to_trip_is_stored_in_part_in_each() -> None:
    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def main(A: T.Tensor((21, 40), "float32"), Y: T.Tensor((21, 40), "float32"), V: T.Tensor((21,), "float32")):
        with T.Kernel(2, threads=2, is_npu=True) as cid:
            x, z = T.alloc_shared((16, 32), "float32"), T.alloc_shared((16, 32), "float32")
            v = T.alloc_shared((16,), "float32")
            T.copy(A[cid * 16, 0], x)
            for j in T.serial(2):
                T.copy(A[cid * 16, j * 32], z, pad_value=1.5)
                T.reduce_sum(z, v, dim=1)
                T.tile.add(x, x, x)
                T.copy(x, Y[cid * 16, j * 32])
            T.copy(v, V[cid * 16])

    a = drawn(21, 40)
    found, sums = main(a)
    np.testing.assert_allclose(found, np.concatenate([2 * a[:, :32], 4 * a[:, :8]], axis=1), rtol=1e-6)
    np.testing.assert_allclose(sums, a[:, 32:].sum(1) + 24 * 1.5, rtol=1e-5)


def test_a_padded_window_is_what_a_loop_leaves() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(A: T.Tensor((16, 40), "float32"), V: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=2, is_npu=True) as _:
            y, u = T.alloc_shared((16, 32), "float32"), T.alloc_shared((16,), "float32")
            T.fill(u, 0.5)
            for j in T.serial(2):
                T.tile.mul(u, u, 2.0)
                T.copy(A[0, j * 32], y, pad_value=-3.0)
            T.reduce_min(y, u, dim=1, clear=False)
            T.copy(u, V)

    np.testing.assert_array_equal(main(drawn(16, 40)), np.full(16, -3, np.float32))
