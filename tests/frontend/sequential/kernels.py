"""Kernels whose authors decided all: flags, slots that are filled ahead, cores that meet through a workspace."""

from __future__ import annotations

import functools
from typing import Any

import tile_eg
import tile_eg.language as T
from tile_eg.jit import CompiledKernel

SYNC = tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC


@functools.cache
def product(
    k_tiles: int = 4, slots: int = 2, tiles: tuple[int, int] = (2, 2), blocks: int = 3, relu: bool = False
) -> CompiledKernel:
    """C = A @ B: tiles in turn, the next trip's operands loaded ahead into `slots` of L1, two slots of L0, a flag for each."""
    rows, cols = tiles

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        M, N, K = rows * 32, cols * 32, k_tiles * 64  # noqa: N806

        @T.macro
        def begin():
            for s in range(slots):
                T.set_flag("mte1", "mte2", s)
            for s in range(2):
                T.set_flag("m", "mte1", s)
            T.set_flag("fix", "m", 0)

        @T.macro
        def end():
            for s in range(slots):
                T.wait_flag("mte1", "mte2", s)
            for s in range(2):
                T.wait_flag("m", "mte1", s)
            T.wait_flag("fix", "m", 0)

        @T.prim_func
        def product(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float")):
            with T.Kernel(blocks, is_npu=True) as (cid, _):
                a = T.alloc_L1((slots, 32, 64), "float16")
                b = T.alloc_L1((slots, 64, 32), "float16")
                l0a = T.alloc_L0A((2, 32, 32), "float16")
                l0b = T.alloc_L0B((2, 32, 32), "float16")
                c = T.alloc_L0C((32, 32), "float")
                with T.Scope("C"):
                    begin()
                    for i in T.serial(T.ceildiv(rows * cols, blocks)):
                        tile = i * blocks + cid
                        if tile < rows * cols:
                            bx = tile // cols
                            by = tile % cols
                            T.wait_flag("mte1", "mte2", 0)
                            T.copy(A[bx * 32, 0], a[0, :, :])
                            T.copy(B[0, by * 32], b[0, :, :])
                            T.set_flag("mte2", "mte1", 0)
                            T.wait_flag("fix", "m", 0)
                            for k in T.serial(k_tiles):
                                if k < k_tiles - 1:
                                    T.wait_flag("mte1", "mte2", (k + 1) % slots)
                                    T.copy(A[bx * 32, (k + 1) * 64], a[(k + 1) % slots, :, :])
                                    T.copy(B[(k + 1) * 64, by * 32], b[(k + 1) % slots, :, :])
                                    T.set_flag("mte2", "mte1", (k + 1) % slots)
                                T.wait_flag("mte2", "mte1", k % slots)
                                for kk in T.serial(2):
                                    T.wait_flag("m", "mte1", kk % 2)
                                    T.copy(a[k % slots, 0, kk * 32], l0a[kk % 2, :, :])
                                    T.copy(b[k % slots, kk * 32, 0], l0b[kk % 2, :, :])
                                    T.set_flag("mte1", "m", kk % 2)
                                    T.wait_flag("mte1", "m", kk % 2)
                                    T.mma(l0a[kk % 2, :, :], l0b[kk % 2, :, :], c, init=T.And(k == 0, kk == 0))
                                    T.pipe_barrier("m")
                                    T.set_flag("m", "mte1", kk % 2)
                                T.set_flag("mte1", "mte2", k % slots)
                            T.set_flag("m", "fix", 0)
                            T.wait_flag("m", "fix", 0)
                            T.copy(c, C[bx * 32, by * 32], enable_relu=relu)
                            T.set_flag("fix", "m", 0)
                    end()

        return product

    return kernel()


@functools.cache
def added(trips: int = 4, ahead: bool = True, cols: int = 64) -> CompiledKernel:
    """C = A + B in two slots of UB, the next trip's tiles loaded `ahead` or not; each vector core has half of the rows."""
    rows = 8

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        @T.prim_func
        def added(A: T.Tensor((4 * trips * rows, cols), "float"), B: T.Tensor((4 * trips * rows, cols), "float"),
                  C: T.Tensor((4 * trips * rows, cols), "float")):  # fmt: skip
            with T.Kernel(2, is_npu=True) as (cid, vid):
                a = T.alloc_ub((2, rows, cols), "float")
                b = T.alloc_ub((2, rows, cols), "float")
                c = T.alloc_ub((2, rows, cols), "float")
                first = (cid * 2 + vid) * trips * rows
                with T.Scope("V"):
                    for s in range(2):
                        T.set_flag("v", "mte2", s)
                        T.set_flag("mte3", "v", s)
                    if ahead:
                        T.wait_flag("v", "mte2", 0)
                        T.copy(A[first, 0], a[0, :, :])
                        T.copy(B[first, 0], b[0, :, :])
                        T.set_flag("mte2", "v", 0)
                    for k in T.serial(trips):
                        if ahead:
                            if k < trips - 1:
                                T.wait_flag("v", "mte2", (k + 1) % 2)
                                T.copy(A[first + (k + 1) * rows, 0], a[(k + 1) % 2, :, :])
                                T.copy(B[first + (k + 1) * rows, 0], b[(k + 1) % 2, :, :])
                                T.set_flag("mte2", "v", (k + 1) % 2)
                        else:
                            T.wait_flag("v", "mte2", k % 2)
                            T.copy(A[first + k * rows, 0], a[k % 2, :, :])
                            T.copy(B[first + k * rows, 0], b[k % 2, :, :])
                            T.set_flag("mte2", "v", k % 2)
                        T.wait_flag("mte2", "v", k % 2)
                        T.wait_flag("mte3", "v", k % 2)
                        T.tile.add(c[k % 2, :, :], a[k % 2, :, :], b[k % 2, :, :])
                        T.set_flag("v", "mte2", k % 2)
                        T.set_flag("v", "mte3", k % 2)
                        T.wait_flag("v", "mte3", k % 2)
                        T.copy(c[k % 2, :, :], C[first + k * rows, 0])
                        T.set_flag("mte3", "v", k % 2)
                    for s in range(2):
                        T.wait_flag("v", "mte2", s)
                        T.wait_flag("mte3", "v", s)

        return added

    return kernel()


@functools.cache
def softmax(cols: int = 64) -> CompiledKernel:
    """Each row's softmax, a barrier behind each statement."""

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        @T.prim_func
        def softmax(A: T.Tensor((64, cols), "float"), B: T.Tensor((64, cols), "float")):
            with T.Kernel(2, is_npu=True) as (cid, vid):
                x = T.alloc_ub((16, cols), "float")
                m = T.alloc_ub((16, 1), "float")
                wide = T.alloc_ub((16, cols), "float")
                row = cid * 32 + vid * 16
                with T.Scope("V"):
                    T.copy(A[row, 0], x)
                    T.barrier_all()
                    T.reduce_max(x, m, dim=-1)
                    T.barrier_all()
                    T.tile.broadcast(wide, m)
                    T.barrier_all()
                    T.tile.sub(x, x, wide)
                    T.barrier_all()
                    T.tile.exp(x, x)
                    T.barrier_all()
                    T.reduce_sum(x, m, dim=-1)
                    T.barrier_all()
                    T.tile.broadcast(wide, m)
                    T.barrier_all()
                    T.tile.div(x, x, wide)
                    T.barrier_all()
                    T.copy(x, B[row, 0])

        return softmax

    return kernel()


@functools.cache
def biased(flagged: bool = True, early: bool = False, tiles: int = 2) -> CompiledKernel:
    """D = relu(A @ B + C), tile by tile through one workspace: a flag says that it is full, another that it is free.

    `early`: the cube core does not wait until it is free."""

    @tile_eg.jit(out_idx=[-1], workspace_idx=[3], pass_configs={SYNC: True})
    def kernel() -> Any:
        @T.prim_func
        def biased(A: T.Tensor((tiles * 32, 64), "float16"), B: T.Tensor((64, 64), "float16"),
                   C: T.Tensor((tiles * 32, 64), "float"), workspace: T.Tensor((32, 64), "float"),
                   D: T.Tensor((tiles * 32, 64), "float")):  # fmt: skip
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_L1((32, 64), "float16")
                b = T.alloc_L1((64, 64), "float16")
                c = T.alloc_L0C((32, 64), "float")
                x = T.alloc_ub((16, 64), "float")
                y = T.alloc_ub((16, 64), "float")
                with T.Scope("C"):
                    T.copy(B[0, 0], b)
                    for t in T.serial(tiles):
                        T.copy(A[t * 32, 0], a)
                        T.gemm_v0(a, b, c, init=True)
                        if not early:
                            T.wait_cross_flag(1)
                        T.copy(c, workspace[0, 0])
                        T.set_cross_flag("FIX", 0)
                    if not early:
                        T.wait_cross_flag(1)
                with T.Scope("V"):
                    T.set_cross_flag("MTE2", 1)
                    for t in T.serial(tiles):
                        T.copy(C[t * 32 + vid * 16, 0], y)
                        if flagged:
                            T.wait_cross_flag(0)
                        T.copy(workspace[vid * 16, 0], x)
                        T.set_cross_flag("MTE2", 1)
                        T.tile.add(x, x, y)
                        T.tile.relu(x, x)
                        T.copy(x, D[t * 32 + vid * 16, 0])

        return biased

    return kernel()


@functools.cache
def attention(trips: int = 3, crossed: bool = False) -> CompiledKernel:
    """O = softmax(Q K^T / 8) V for a block of 32 rows, both cores in loops of their own that wait for one another twice a trip.

    `crossed`: each core first waits for what the other one sets last."""

    @tile_eg.jit(out_idx=[3], workspace_idx=[4, 5, 6], pass_configs={SYNC: True})
    def kernel() -> Any:
        S = 32 * trips  # noqa: N806

        @T.prim_func
        def attention(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((S, 64), "float16"), V: T.Tensor((S, 64), "float16"),
                      O: T.Tensor((64, 64), "float16"), scores: T.Tensor((2, 32, 32), "float"),  # noqa: E741
                      weights: T.Tensor((2, 32, 32), "float16"), parts: T.Tensor((2, 32, 64), "float")):  # fmt: skip
            with T.Kernel(2, is_npu=True) as (cid, vid):
                q = T.alloc_L1((32, 64), "float16")
                k = T.alloc_L1((32, 64), "float16")
                v = T.alloc_L1((32, 64), "float16")
                p = T.alloc_L1((32, 32), "float16")
                c = T.alloc_L0C((32, 32), "float")
                d = T.alloc_L0C((32, 64), "float")
                s = T.alloc_ub((16, 32), "float")
                half = T.alloc_ub((16, 32), "float16")
                o = T.alloc_ub((16, 64), "float")
                part = T.alloc_ub((16, 64), "float")
                out = T.alloc_ub((16, 64), "float16")
                m = T.alloc_ub((16,), "float")
                old = T.alloc_ub((16,), "float")
                total = T.alloc_ub((16,), "float")
                fresh = T.alloc_ub((16,), "float")
                with T.Scope("C"):
                    T.copy(Q[cid * 32, 0], q)
                    for i in T.serial(trips):
                        if crossed:
                            T.wait_cross_flag(1)
                        T.copy(K[i * 32, 0], k)
                        T.gemm_v0(q, k, c, transpose_B=True, init=True)
                        T.copy(c, scores[cid, 0, 0])
                        T.set_cross_flag("FIX", 0)
                        T.copy(V[i * 32, 0], v)
                        if not crossed:
                            T.wait_cross_flag(1)
                        T.copy(weights[cid, 0, 0], p)
                        T.gemm_v0(p, v, d, init=True)
                        T.copy(d, parts[cid, 0, 0])
                        T.set_cross_flag("FIX", 2)
                        T.wait_cross_flag(3)
                with T.Scope("V"):
                    T.tile.fill(m, -1e30)
                    T.tile.fill(total, 0.0)
                    T.tile.fill(o, 0.0)
                    for _j in T.serial(trips):
                        T.wait_cross_flag(0)
                        T.copy(scores[cid, vid * 16, 0], s)
                        T.tile.mul(s, s, 0.125)
                        T.tile.max(old, m, m)
                        T.reduce_max(s, fresh, dim=-1)
                        T.tile.max(m, m, fresh)
                        T.tile.sub(old, old, m)
                        T.tile.exp(old, old)
                        for r in range(16):
                            T.tile.sub(s[r, :], s[r, :], m[r])
                        T.tile.exp(s, s)
                        T.reduce_sum(s, fresh, dim=-1)
                        T.tile.mul(total, total, old)
                        T.tile.add(total, total, fresh)
                        T.copy(s, half)
                        T.copy(half, weights[cid, vid * 16, 0])
                        T.set_cross_flag("MTE3", 1)
                        for r in range(16):
                            T.tile.mul(o[r, :], o[r, :], old[r])
                        T.wait_cross_flag(2)
                        T.copy(parts[cid, vid * 16, 0], part)
                        T.tile.add(o, o, part)
                        T.set_cross_flag("MTE2", 3)
                    for r in range(16):
                        T.tile.div(o[r, :], o[r, :], total[r])
                    T.copy(o, out)
                    T.copy(out, O[cid * 32 + vid * 16, 0])

        return attention

    return kernel()
