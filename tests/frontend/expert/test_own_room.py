"""What a kept kernel takes for itself in UB, and what conditions say of its loops and windows."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T


@T.prim_func
def two_reductions(A: T.Tensor((64, 256), "float32"), C: T.Tensor((96,), "float32")):
    with T.Kernel(1) as _:  # noqa: SIM117
        with T.Scope("V"):
            x, y = T.alloc_ub((64, 256), "float32"), T.alloc_ub((32, 256), "float32")
            rest = T.alloc_ub((18, 1024), "float32")
            m, n = T.alloc_ub((64,), "float32"), T.alloc_ub((32,), "float32")
            T.copy(A, x)
            T.copy(A[32:64, :], y)
            T.tile.fill(rest, 0.0)
            T.barrier_all()
            T.reduce_max(x, m, dim=-1)
            T.reduce_max(y, n, dim=-1)
            T.barrier_all()
            T.copy(m, C[0:64])
            T.copy(n, C[64:96])


@pytest.mark.slow
def test_reductions_share_their_room_where_ub_is_full() -> None:
    """168 KiB are the author's; 16 KiB and 8 KiB do not both fit beside them."""
    x = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)
    np.testing.assert_array_equal(tile_eg.compile(two_reductions, out_idx=[-1])(x), np.r_[x.max(1), x[32:].max(1)])


@T.prim_func
def some_blocks(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
    with T.Kernel(4) as cid:  # noqa: SIM117
        with T.Scope("V"):
            x = T.alloc_ub((1, 8), "float32")
            for i in T.serial(T.if_then_else(cid < 3, 1, 0)):
                T.copy(A[cid + i, 0], x)
                T.barrier_all()
                T.copy(x, C[cid + i, 0])


def test_a_loop_has_as_many_trips_as_a_comparison_is_worth() -> None:
    x, y = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((4, 8), np.float32)
    tile_eg.compile(some_blocks)(x, y)
    np.testing.assert_array_equal(y, x * (np.arange(4) < 3)[:, None])


@T.prim_func
def fewer_than_rounds(A: T.Tensor((48, 16), "float16"), C: T.Tensor((48, 16), "float16")):
    with T.Kernel(2) as cid:  # noqa: SIM117
        with T.Scope("V"):
            x = T.alloc_ub((16, 16), "float16")
            for i in T.serial(2):
                tile = i * 2 + cid
                if tile < 3:
                    T.copy(A[tile * 16, 0], x)
                    T.barrier_all()
                    T.copy(x, C[tile * 16, 0])
                    T.barrier_all()


def test_what_a_branch_asks_keeps_windows_inside() -> None:
    """Nothing is filled with padding, as no window passes the end of its tensor where the condition holds."""
    kernel = tile_eg.compile(fewer_than_rounds, out_idx=[-1])
    x = np.arange(48 * 16, dtype=np.float16).reshape(48, 16)
    np.testing.assert_array_equal(kernel(x), x)
    assert "Duplicate" not in kernel.get_kernel_source()
