"""Kernels with flags, barriers or scopes of their own: kept as they are written, and judged by the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel

ROWS, COLS = 32, 64
A = np.random.default_rng(0).uniform(-1, 1, (ROWS, COLS)).astype(np.float32)



def doubled(loaded: bool = True, waited: bool = True):
    """Twice a tensor, each half on a vector core; with the flag from the load to the sum set, and waited for."""

    @T.prim_func
    def set_and_waited(X: T.Tensor((ROWS, COLS), "float32"), Y: T.Tensor((ROWS, COLS), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((ROWS // 2, COLS), "float32")
            with T.Scope("V"):
                T.copy(X[vid * ROWS // 2, 0], x)
                T.set_flag("mte2", "v", 0)
                T.wait_flag("mte2", "v", 0)
                T.tile.add(x, x, x)
                T.set_flag("v", "mte3", 1)
                T.wait_flag("v", "mte3", 1)
                T.copy(x, Y[vid * ROWS // 2, 0])

    @T.prim_func
    def neither(X: T.Tensor((ROWS, COLS), "float32"), Y: T.Tensor((ROWS, COLS), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((ROWS // 2, COLS), "float32")
            with T.Scope("V"):
                T.copy(X[vid * ROWS // 2, 0], x)
                T.tile.add(x, x, x)
                T.set_flag("v", "mte3", 1)
                T.wait_flag("v", "mte3", 1)
                T.copy(x, Y[vid * ROWS // 2, 0])

    @T.prim_func
    def only_waited(X: T.Tensor((ROWS, COLS), "float32"), Y: T.Tensor((ROWS, COLS), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((ROWS // 2, COLS), "float32")
            with T.Scope("V"):
                T.copy(X[vid * ROWS // 2, 0], x)
                T.wait_flag("mte2", "v", 0)
                T.tile.add(x, x, x)
                T.set_flag("v", "mte3", 1)
                T.wait_flag("v", "mte3", 1)
                T.copy(x, Y[vid * ROWS // 2, 0])

    return tile_eg.jit(out_idx=[-1])(set_and_waited if loaded else only_waited if waited else neither)


def product():
    """A product with a barrier on either side of it."""

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((32, 128), "float16"), Y: T.Tensor((128, 48), "float16"), Z: T.Tensor((32, 48), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_L1((32, 64), "float16")
            y = T.alloc_L1((64, 48), "float16")
            z = T.alloc_L0C((32, 48), "float32")
            with T.Scope("C"):
                for k in T.serial(2):
                    T.copy(X[0, k * 64], x)
                    T.copy(Y[k * 64, 0], y)
                    T.barrier_all()
                    if k == 0:
                        T.gemm_v0(x, y, z, init=True)
                    else:
                        T.gemm_v0(x, y, z)
                    T.barrier_all()
                T.copy(z, Z[0, 0])

    return main


def test_a_kernel_with_flags_is_kept() -> None:
    kernel = doubled()
    assert isinstance(kernel.kernel, KeptKernel)
    assert "HardEvent::MTE2_V" in kernel.get_kernel_source()


def test_its_numbers_are_right() -> None:
    np.testing.assert_array_equal(doubled()(A), 2 * A)


def test_a_flag_that_is_missing_is_a_race_at_the_line_of_the_source() -> None:
    with pytest.raises(TileError, match="race") as error:
        doubled(False, False)(A)
    assert "T.tile.add(x, x, x)" in str(error.value) or "T.copy(X" in str(error.value)


def exchanged(meets: bool) -> Any:
    """Each of two blocks stores its part of a workspace and loads the other one's."""

    @T.prim_func
    def main(X: T.Tensor((64, 64), "float32"), W: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, is_npu=True) as (b, vid):
            x = T.alloc_ub((16, 64), "float32")
            T.copy(X[b * 32 + vid * 16, 0], x)
            T.barrier_all()
            T.copy(x, W[b * 32 + vid * 16, 0])
            T.barrier_all()
            if meets:
                T.sync_all()
            T.copy(W[(1 - b) * 32 + vid * 16, 0], x)
            T.barrier_all()
            T.copy(x, Y[b * 32 + vid * 16, 0])

    return tile_eg.compile(main, out_idx=[-1], workspace_idx=[1])


def test_blocks_that_read_what_others_store_are_told_to_meet() -> None:
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    with pytest.raises(TileError, match="^error: block_race: (RAW|WAR)") as error:
        exchanged(False)(x)
    assert "T.sync_all()" in str(error.value.help)
    np.testing.assert_array_equal(exchanged(True)(x), np.roll(x, 32, 0))


def test_a_wait_for_a_flag_that_nobody_sets_is_a_deadlock() -> None:
    with pytest.raises(TileError, match="deadlock|never set|waits") as error:
        doubled(False, True)(A)
    assert "wait_flag" in str(error.value)


@pytest.mark.slow
def test_a_product_with_barriers_is_right() -> None:
    random = np.random.default_rng(1)
    x, y = (random.uniform(-1, 1, shape).astype(np.float16) for shape in ((32, 128), (128, 48)))
    want = x.astype(np.float32) @ y.astype(np.float32)
    np.testing.assert_allclose(product()(x, y).astype(np.float32), want, rtol=4e-3, atol=4e-3)


def test_a_switch_that_leaves_flags_to_the_author_is_refused_where_there_are_none() -> None:
    @T.prim_func
    def plain(X: T.Tensor((ROWS, COLS), "float32"), Y: T.Tensor((ROWS, COLS), "float32")):
        with T.Kernel(1, is_npu=True) as _:
            x = T.alloc_shared((ROWS, COLS), "float32")
            T.copy(X[0, 0], x)
            T.copy(x, Y[0, 0])

    switched: Callable[..., object] = tile_eg.jit(out_idx=[-1], pass_configs={tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: False})
    with pytest.raises(TileError, match="no flags, barriers"):
        switched(plain)
