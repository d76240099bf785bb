"""Kernels of the tests of this folder, compiled once: one on vector cores, one on cube and vector cores, one of any size."""

from __future__ import annotations

from functools import cache

import numpy as np

import tile_eg
from tile_eg import language as T
from tile_eg.jit import CompiledKernel
from tile_eg.jit.any_size import AnySizeKernel

ROWS, COLS = 64, 96


@cache
def doubled() -> CompiledKernel:
    """Y = X + X, on vector cores."""

    @tile_eg.jit(out_idx=[-1])
    def kernel():
        @T.prim_func
        def doubled(X: T.Tensor((64, 96), "float32"), Y: T.Tensor((64, 96), "float32")):
            with T.Kernel(4) as b:
                x = T.alloc_shared((16, 96), "float32")
                T.copy(X[b * 16, 0], x)
                for i, j in T.Parallel(16, 96):
                    x[i, j] = x[i, j] + x[i, j]
                T.copy(x, Y[b * 16, 0])

        return doubled

    return kernel()


@cache
def scaled_product() -> CompiledKernel:
    """D = exp(A @ B), cube and vector cores together, with a workspace."""

    @tile_eg.jit(out_idx=[-1])
    def kernel():
        @T.prim_func
        def scaled_product(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), D: T.Tensor((64, 64), "float32")):
            with T.Kernel(2) as b:
                x, y = T.alloc_shared((32, 64), "float16"), T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((32, 64), "float32")
                T.copy(A[b * 32, 0], x)
                T.copy(B[0, 0], y)
                T.gemm(x, y, c, clear_accum=True)
                for i, j in T.Parallel(32, 64):
                    c[i, j] = T.exp(c[i, j])
                T.copy(c, D[b * 32, 0])

        return scaled_product

    return kernel()


@cache
def any_rows() -> AnySizeKernel:
    """Y = 3 X for any number of rows."""

    @tile_eg.jit(out_idx=[-1])
    def kernel():
        M = T.symbolic("M")

        @T.prim_func
        def any_rows(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32")):
            with T.Kernel(T.ceildiv(M, 16)) as b:
                x = T.alloc_shared((16, 64), "float32")
                T.copy(X[b * 16, 0], x)
                for i, j in T.Parallel(16, 64):
                    x[i, j] = x[i, j] * 3.0
                T.copy(x, Y[b * 16, 0])

        return any_rows

    return kernel()


def matrix(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.25).astype(dtype)


@tile_eg.jit
def doubled_by(M: int, N: int, rows: int = 16):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, rows)) as b:
            x = T.alloc_shared((rows, N), "float32")
            T.copy(X[b * rows, 0], x)
            for i, j in T.Parallel(rows, N):
                x[i, j] = x[i, j] + x[i, j]
            T.copy(x, Y[b * rows, 0])

    return main


@cache
def in_two_launches():
    """Each of 4 blocks sums 16 columns, and a second launch their sums: (16, 64) to (16,)."""

    @tile_eg.jit(out_idx=[-1], workspace_idx=[1])
    @T.prim_func
    def row_sums(X: T.Tensor((16, 64), "float32"), part: T.Tensor((4, 16), "float32"), Y: T.Tensor((16,), "float32")):
        with T.Kernel(4) as p:
            x, s = T.alloc_shared((16, 16), "float32"), T.alloc_fragment((16,), "float32")
            T.copy(X[0, p * 16], x)
            T.reduce_sum(x, s, dim=1)
            T.copy(s, part[p, 0])
        with T.Kernel(1):
            y, s = T.alloc_shared((4, 16), "float32"), T.alloc_fragment((16,), "float32")
            T.copy(part[0, 0], y)
            T.reduce_sum(y, s, dim=0)
            T.copy(s, Y[0])

    return row_sums
