"""Loops that would be written out into too much for a search are done in the order of their statements."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileWarning

rng = np.random.default_rng(0)


@tile_eg.jit(out_idx=[-1])
def triangle(N):
    @T.prim_func
    def sums(X: T.Tensor((N, N), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((N, N), "float32")
            y = T.alloc_shared((N,), "float32")
            T.copy(X, x)
            T.clear(y)
            for i in T.serial(N):
                for j in T.serial(i + 1):
                    y[i] = y[i] + x[i, j]
            T.copy(y, Y)

    return sums


def test_many_single_elements():
    x = rng.uniform(-1, 1, (13, 13)).astype(np.float32)
    with pytest.warns(TileWarning, match="writes more than 64 elements one by one takes the search long"):
        y = triangle(13)(x)
    np.testing.assert_allclose(y, np.tril(x).sum(axis=1), rtol=1e-5, atol=1e-6)


@tile_eg.jit(out_idx=[-1])
def mean_and_variance(N):
    @T.prim_func
    def welford(X: T.Tensor((N,), "float32"), Y: T.Tensor((2,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((N,), "float32")
            y = T.alloc_ub((2,), "float32")
            mean = T.alloc_var("float32", init=0.0)
            squares = T.alloc_var("float32", init=0.0)
            d = T.alloc_var("float32")
            T.copy(X, x)
            for i in T.serial(N):
                d = x[i] - mean
                mean = mean + d / (i + 1)
                squares = squares + d * (x[i] - mean)
            y[0] = mean
            y[1] = squares / N
            T.copy(y, Y)

    return welford


def test_a_number_that_doubles_from_trip_to_trip():
    x = rng.uniform(-1, 1, 40).astype(np.float32)
    with pytest.warns(TileWarning, match="made of more than 400 operations and operands, takes the search long"):
        y = mean_and_variance(40)(x)
    np.testing.assert_allclose(y, [x.mean(), x.var()], rtol=1e-4, atol=1e-6)


@tile_eg.jit(out_idx=[-2, -1])
def doubled_and_cast(M, N, K, planes):
    @T.prim_func
    def copies(X: T.Tensor((M, N, K), "float16"), Y: T.Tensor((M, N, K), "float16"), Z: T.Tensor((M, N, K), "float32")):
        with T.Kernel(T.ceildiv(M, planes), is_npu=True) as (cid, _):
            x = T.alloc_fragment((planes, N, K), "float16")
            y = T.alloc_fragment((planes, N, K), "float16")
            z = T.alloc_fragment((planes, N, K), "float32")
            T.copy(X[cid * planes, 0, 0], x)
            T.copy(x, y)
            T.tile.add(y, x, y)
            for p, i, j in T.Parallel(planes, N, K):
                y[p, i, j] = y[p, i, j] + x[p, i, j]
            T.copy(y, z)
            T.copy(y, Y[cid * planes, 0, 0])
            T.copy(z, Z[cid * planes, 0, 0])

    return copies


def test_many_statements_on_planes():
    x = rng.uniform(-1, 1, (32, 5, 16)).astype(np.float16)
    with pytest.warns(TileWarning, match="would be more than 64 statements, which take the search long"):
        y, z = doubled_and_cast(32, 5, 16, 16)(x)
    np.testing.assert_allclose(y, 3 * x, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(z, y.astype(np.float32))
