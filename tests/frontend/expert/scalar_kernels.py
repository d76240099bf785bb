"""Small kernels that are kept, whose scalar unit reads elements, counts, and decides."""

from __future__ import annotations

import functools
from typing import Any

import tile_eg
import tile_eg.language as T

ROWS, COLS = 16, 64


@functools.cache
def gathered() -> Any:
    """Rows of X at indices in UB, as many as L says; those at even indices plus 1; then times 2, or plus how many were not."""

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def gathered(
        X: T.Tensor((40, COLS), "float"),
        ids_of: T.Tensor((ROWS,), "int32"),
        L: T.Tensor((1,), "int32"),
        Y: T.Tensor((ROWS, COLS), "float"),
    ):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            ids = T.alloc_ub([ROWS], "int32")
            row = T.alloc_ub([COLS], "float")
            below = T.alloc_var("int32", init=0)
            with T.Scope("V"):
                T.copy(ids_of[0], ids)
                T.barrier_all()
                for i in T.serial(L[0]):
                    T.copy(X[ids[i], 0], row)
                    T.barrier_all()
                    if ids[i] % 2 == 0:
                        T.tile.add(row, row, 1.0)
                    if row[0] > 0.0:
                        T.tile.mul(row, row, 2.0)
                    else:
                        below = below + 1
                    T.tile.add(row, row, below)
                    T.barrier_all()
                    T.copy(row, Y[i, 0])
                    T.barrier_all()

    return gathered


@functools.cache
def summed(size: int = 16) -> Any:
    """Sums of the rows from B[s] to B[s + 1] of X, `size` rows at a time, the last ones fewer; one block each."""

    @tile_eg.jit(out_idx=[-1])
    def make() -> Any:
        rows, starts = T.symbolic("rows"), T.symbolic("starts")

        @T.prim_func
        def summed(X: T.Tensor((rows, COLS), "float"), B: T.Tensor((starts + 1,), "int32"), Y: T.Tensor((starts, COLS), "float")):
            with T.Kernel(starts, is_npu=True) as (cid, vid):
                part = T.alloc_ub([size, COLS], "float")
                total = T.alloc_ub([COLS], "float")
                one = T.alloc_ub([COLS], "float")
                with T.Scope("V"):
                    first = B[cid]
                    count = B[cid + 1] - first
                    T.tile.fill(total, 0.0)
                    for k in T.serial(T.ceildiv(count, size)):
                        n = T.if_then_else(k * size + size > count, count - k * size, size)
                        T.barrier_all()
                        T.copy(X[first + k * size : first + k * size + n, 0:COLS], part)
                        T.barrier_all()
                        T.reduce_sum(part, one, dim=0)
                        T.tile.add(total, total, one)
                    T.barrier_all()
                    T.copy(total, Y[cid, 0])

        return summed

    return make()


@functools.cache
def halved() -> Any:
    """x / 2 as often as x[0] is above 1."""

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def halved(X: T.Tensor((COLS,), "float"), Y: T.Tensor((COLS,), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([COLS], "float")
            with T.Scope("V"):
                T.copy(X, x)
                T.barrier_all()
                while x[0] > 1.0:
                    T.tile.mul(x, x, 0.5)
                T.barrier_all()
                T.copy(x, Y)

    return halved


@functools.cache
def flagged() -> Any:
    """C = A @ A plus 1, in two parts with a flag between cores for each."""

    @tile_eg.jit(out_idx=[-1], workspace_idx=[1])
    @T.prim_func
    def flagged(A: T.Tensor((64, 64), "float16"), W: T.Tensor((2, 64, 64), "float"), C: T.Tensor((2, 64, 64), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float")
            x = T.alloc_ub((32, 64), "float")
            with T.Scope("C"):
                T.copy(A[0, 0], a)
                for j in T.serial(2):
                    T.gemm_v0(a, a, c, init=True)
                    T.copy(c, W[j, 0, 0])
                    T.set_cross_flag("FIX", 3 + j)
            with T.Scope("V"):
                for j in T.serial(2):
                    T.wait_cross_flag(3 + j, "MTE2")
                    T.copy(W[j, vid * 32, 0], x)
                    T.barrier_all()
                    T.tile.add(x, x, 1.0)
                    T.barrier_all()
                    T.copy(x, C[j, vid * 32, 0])
                    T.barrier_all()

    return flagged
