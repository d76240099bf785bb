"""Small kernels with flags, barriers and scopes, of which a part can be left out."""

from __future__ import annotations

import functools
from typing import Any

import tile_eg
import tile_eg.language as T
from tile_eg.jit import CompiledKernel

SYNC = tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC


@functools.cache
def add(
    loaded: bool = True, computed: bool = True, waits: bool = True, rows: int = 16, auto: bool | None = None
) -> CompiledKernel:
    """C = A + B of 64 x 64, half of the rows on each vector core, with both flags or without one."""

    @tile_eg.jit(out_idx=[-1], pass_configs={} if auto is None else {SYNC: auto})
    def kernel() -> Any:
        @T.prim_func
        def add(A: T.Tensor((64, 64), "float"), B: T.Tensor((64, 64), "float"), C: T.Tensor((64, 64), "float")):
            with T.Kernel(64 // (2 * rows), is_npu=True) as (cid, vid):
                a = T.alloc_ub((rows, 64), "float")
                b = T.alloc_ub((rows, 64), "float")
                c = T.alloc_ub((rows, 64), "float")
                row = cid * 2 * rows + vid * rows
                with T.Scope("V"):
                    T.copy(A[row, 0], a)
                    T.copy(B[row, 0], b)
                    if loaded:
                        T.set_flag("mte2", "v", 0)
                        if waits:
                            T.wait_flag("mte2", "v", 0)
                    elif not waits:
                        T.wait_flag("mte2", "v", 0)
                    T.tile.add(c, a, b)
                    if computed:
                        T.set_flag("v", "mte3", 1)
                        T.wait_flag("v", "mte3", 1)
                    T.copy(c, C[row, 0])

        return add

    return kernel()


@functools.cache
def gemm(stages: int = 0, step: int = 64, sizes: tuple[int, int, int] = (128, 128, 256)) -> CompiledKernel:
    """C = A @ B with barriers; `stages` of T.Pipelined, or a plain loop."""
    M, N, K = sizes  # noqa: N806
    bm, bn = 64, 64

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        @T.prim_func
        def gemm(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float")):
            with T.Kernel(T.ceildiv(M, bm) * T.ceildiv(N, bn), is_npu=True) as (cid, _):
                bx = cid // T.ceildiv(N, bn)
                by = cid % T.ceildiv(N, bn)
                a = T.alloc_L1((bm, step), "float16")
                b = T.alloc_L1((step, bn), "float16")
                c = T.alloc_L0C((bm, bn), "float")
                with T.Scope("C"):
                    for k in T.Pipelined(T.ceildiv(K, step), num_stages=stages):
                        T.copy(A[bx * bm, k * step], a)
                        T.copy(B[k * step, by * bn], b)
                        T.barrier_all()
                        T.gemm_v0(a, b, c, init=(k == 0))
                        T.barrier_all()
                    T.copy(c, C[bx * bm, by * bn])

        return gemm

    return kernel()


@functools.cache
def ring() -> CompiledKernel:
    """C = A @ B with two slots of L1 and L0, T.mma, and a flag for each slot and direction."""

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        @T.macro
        def begin():
            for s in range(2):
                T.set_flag("mte1", "mte2", s)
                T.set_flag("m", "mte1", s)

        @T.prim_func
        def ring(A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 256), "float16"), C: T.Tensor((64, 64), "float16")):
            with T.Kernel(1, is_npu=True) as _:
                a = T.alloc_L1((2, 64, 64), "float16")
                b = T.alloc_L1((2, 64, 64), "float16")
                l0a = T.alloc_L0A((2, 64, 64), "float16")
                l0b = T.alloc_L0B((2, 64, 64), "float16")
                c = T.alloc_L0C((64, 64), "float")
                with T.Scope("C"):
                    begin()
                    for k in T.serial(4):
                        T.wait_flag("mte1", "mte2", k % 2)
                        T.copy(A[0, k * 64], a[k % 2, :, :])
                        T.copy(B[0, k * 64], b[k % 2, :, :])
                        T.set_flag("mte2", "mte1", k % 2)
                        T.wait_flag("mte2", "mte1", k % 2)
                        T.wait_flag("m", "mte1", k % 2)
                        T.copy(a[k % 2, :, :], l0a[k % 2, :, :])
                        T.copy(b[k % 2, :, :], l0b[k % 2, :, :], transpose=True)
                        T.set_flag("mte1", "mte2", k % 2)
                        T.set_flag("mte1", "m", k % 2)
                        T.wait_flag("mte1", "m", k % 2)
                        T.mma(l0a[k % 2, :, :], l0b[k % 2, :, :], c, init=(k == 0))
                        T.set_flag("m", "mte1", k % 2)
                    T.set_flag("m", "fix", 0)
                    T.wait_flag("m", "fix", 0)
                    T.copy(c, C[0, 0], enable_relu=True)
                    for s in range(2):
                        T.wait_flag("mte1", "mte2", s)
                        T.wait_flag("m", "mte1", s)

        return ring

    return kernel()


@functools.cache
def handed_over(flagged: bool = True) -> CompiledKernel:
    """D = A @ B + C: the cube core hands its product to the vector cores in a workspace."""

    @tile_eg.jit(out_idx=[-1], workspace_idx=[3])
    def kernel() -> Any:
        @T.prim_func
        def both(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float"),
                 workspace: T.Tensor((64, 64), "float"), D: T.Tensor((64, 64), "float")):  # fmt: skip
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_L1((64, 64), "float16")
                b = T.alloc_L1((64, 64), "float16")
                c = T.alloc_L0C((64, 64), "float")
                x = T.alloc_ub((32, 64), "float")
                y = T.alloc_ub((32, 64), "float")
                with T.Scope("C"):
                    T.copy(A[0, 0], a)
                    T.copy(B[0, 0], b)
                    T.gemm_v0(a, b, c, init=True)
                    T.copy(c, workspace[0, 0])
                    T.set_cross_flag("FIX", 0)
                with T.Scope("V"):
                    T.copy(C[vid * 32, 0], y)
                    if flagged:
                        T.wait_cross_flag(0)
                    T.copy(workspace[vid * 32, 0], x)
                    T.barrier_all()
                    T.tile.add(x, x, y)
                    T.barrier_all()
                    T.copy(x, D[vid * 32, 0])

        return both

    return kernel()


@functools.cache
def normalised() -> CompiledKernel:
    """Each row over its sum, in tiles that reach beyond the end of the tensor; element by element where rows are scaled."""

    @tile_eg.jit(out_idx=[-1], pass_configs={SYNC: True})
    def kernel() -> Any:
        @T.prim_func
        def normalised(A: T.Tensor((20, 34), "float"), B: T.Tensor((20, 34), "float")):
            with T.Kernel(2, is_npu=True) as (cid, vid):
                a = T.alloc_ub((8, 64), "float")
                s = T.alloc_ub((8,), "float")
                with T.Scope("V"):
                    T.copy(A[cid * 16 + vid * 8, 0], a)
                    T.reduce_sum(a, s, dim=-1)
                    for i in range(8):
                        if cid * 16 + vid * 8 + i < 20:
                            T.tile.div(a[i, :], a[i, :], s[i])
                    T.copy(a, B[cid * 16 + vid * 8, 0])

        return normalised

    return kernel()


@functools.cache
def running_sum() -> CompiledKernel:
    """The cumulative sum of each row, by the scalar unit."""

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        @T.prim_func
        def running(A: T.Tensor((2, 32), "float"), B: T.Tensor((2, 32), "float")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_ub((32,), "float")
                with T.Scope("V"):
                    T.copy(A[vid, 0], a)
                    for i in range(1, 32):
                        a[i] = a[i] + a[i - 1]
                    T.copy(a, B[vid, 0])

        return running

    return kernel()
