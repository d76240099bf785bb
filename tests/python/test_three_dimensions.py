"""Kernels over three dimensions run in the simulator and compute what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T


@tile_eg.jit(out_idx=[-2, -1])
def gated(H, M, N, B=2, dtype="float16"):
    @T.prim_func
    def gated(
        X: T.Tensor((H, M, N), dtype), W: T.Tensor((H, N), dtype), Y: T.Tensor((H, M, N), dtype), S: T.Tensor((H, M), "float32")
    ):
        with T.Kernel(H // B, T.ceildiv(M, 32)) as (bh, bm):
            x = T.alloc_shared((B, 32, N), dtype)
            w = T.alloc_shared((B, N), dtype)
            s = T.alloc_fragment((B, 32), "float32")
            T.copy(X[bh * B, bm * 32, 0], x)
            T.copy(W[bh * B, 0], w)
            for h, i, j in T.Parallel(B, 32, N):
                x[h, i, j] = T.if_then_else(x[h, i, j] > 0, x[h, i, j] * w[h, j], 0.0)
            for h in T.serial(B):
                T.reduce_max(x[h, :, :], s[h, :], dim=1)
            T.copy(x, Y[bh * B, bm * 32, 0])
            T.copy(s, S[bh * B, bm * 32])

    return gated


@pytest.mark.slow
def test_tiles_of_several_heads_are_computed_together() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((4, 50, 64), (4, 64)))
    y, s = gated(4, 50, 64)(x, w)
    want = np.where(x > 0, x * w[:, None, :], np.float16(0))
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(s, want.max(axis=2).astype(np.float32))


@tile_eg.jit(out_idx=[-1])
def doubled(H, M, N, dtype="float32"):
    @T.prim_func
    def doubled(X: T.Tensor((H, M, N), dtype), Y: T.Tensor((H, M, N), dtype)):
        with T.Kernel(T.ceildiv(M, 32)) as bx:
            for h, i, j in T.Parallel(H, 32, N):
                Y[h, bx * 32 + i, j] = X[h, bx * 32 + i, j] * 2.0

    return doubled


@pytest.mark.slow
def test_an_element_loop_over_three_dimensions_of_tensors_needs_no_buffer() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (3, 50, 40)).astype(np.float32)
    np.testing.assert_array_equal(doubled(3, 50, 40)(x), x * 2)


@tile_eg.jit(out_idx=[-1])
def kept(H, M, N):
    @T.prim_func
    def kept(X: T.Tensor((H, M, N), "float32"), Y: T.Tensor((H, M, N), "float32")):
        with T.Kernel(M // 16, is_npu=True) as (cid, vid):
            x = T.alloc_ub((H, 8, N), "float32")
            with T.Scope("V"):
                T.copy(X[0, cid * 16 + vid * 8, 0], x)
                T.barrier_all()
                T.tile.mul(x, x, 2.0)
                T.barrier_all()
                T.copy(x, Y[0:H, cid * 16 + vid * 8 : cid * 16 + vid * 8 + 8, :])

    return kept


def test_planes_that_lie_apart_in_a_tensor_are_copied_one_by_one_in_a_kernel_that_is_kept() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (3, 32, 40)).astype(np.float32)
    np.testing.assert_array_equal(kept(3, 32, 40)(x), x * 2)


@pytest.mark.slow
def test_more_planes_than_are_written_out_are_done_in_order() -> None:
    @tile_eg.jit(out_idx=[-1])
    def many(H):
        @T.prim_func
        def many(X: T.Tensor((2 * H, 2, 4, 16), "float32"), Y: T.Tensor((2 * H, 2, 4, 16), "float32")):
            with T.Kernel(2) as bx:
                x = T.alloc_shared((H, 2, 4, 16), "float32")
                T.copy(X[bx * H, 0, 0, 0], x)
                T.tile.mul(x, x, 2.0)
                T.copy(x, Y[bx * H, 0, 0, 0])

        return many

    x = np.random.default_rng(0).uniform(-1, 1, (20, 2, 4, 16)).astype(np.float32)
    with pytest.warns(UserWarning, match="20 planes of a third dimension are more than the 16"):
        np.testing.assert_array_equal(many(10)(x), x * 2)


@pytest.mark.slow
def test_four_dimensions_are_reduced_over_the_last_one() -> None:
    @tile_eg.jit(out_idx=[-1])
    def summed():
        @T.prim_func
        def summed(X: T.Tensor((2, 3, 4, 16), "float32"), Y: T.Tensor((2, 3, 4), "float32")):
            with T.Kernel(1) as bx:  # noqa: F841
                x = T.alloc_shared((2, 3, 4, 16), "float32")
                s = T.alloc_shared((2, 3, 4), "float32")
                T.copy(X, x)
                T.reduce_max(x, s, dim=-1)
                T.copy(s, Y)

        return summed

    x = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4, 16)).astype(np.float32)
    np.testing.assert_array_equal(summed()(x), x.max(-1))
