"""None for a tensor that the compiled kernel neither reads nor writes."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

X = np.arange(64, dtype=np.float32)


def doubled(saves: bool, n=64, in_order: bool = False, chip: str = "910B2"):
    @tile_eg.jit(chip=chip)
    def made():
        N = n or T.symbolic("N")

        @T.prim_func
        def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32"), S: T.Tensor((N,), "float32")):
            with T.Kernel(1):
                x = T.alloc_shared((64,), "float32")
                T.copy(X[0:64], x)
                if in_order:
                    T.printf("")
                if saves:
                    T.copy(x, S[0:64])
                for i in T.Parallel(64):
                    x[i] = x[i] * 2.0
                T.copy(x, Y[0:64])

        return main

    return made()


@pytest.mark.slow
@pytest.mark.parametrize("form", [{}, {"chip": "950"}, {"n": None}, {"in_order": True}], ids=str)
def test_a_tensor_that_is_not_touched_may_be_none(form):
    y = np.zeros(64, np.float32)
    doubled(False, **form)(X, y, None)
    np.testing.assert_array_equal(y, X * 2)


@pytest.mark.parametrize("form", [{}, {"n": None}, {"in_order": True}], ids=str)
def test_a_tensor_that_is_written_may_not(form):
    with pytest.raises(TileError, match="argument S is no array but of type NoneType"):
        doubled(True, **form)(X, np.zeros(64, np.float32), None)


@pytest.mark.slow
def test_a_size_that_only_the_missing_tensor_has_is_asked_for():
    @tile_eg.jit
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32"), S: T.Tensor((T.symbolic("N"),), "float32")):
        with T.Kernel(1):
            x = T.alloc_shared((64,), "float32")
            T.copy(X[0:64], x)
            T.copy(x, Y[0:64])

    y = np.zeros(64, np.float32)
    with pytest.raises(TileError, match="argument S is no array but of type NoneType"):
        main(X, y, None)
    main(X, y, None, N=8)
    np.testing.assert_array_equal(y, X)


def test_a_tensor_of_indices_is_one_that_is_read():
    @tile_eg.jit
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), B: T.Tensor((4,), "int32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            x = T.alloc_shared((64,), "float32")
            T.copy(X[B[1], :], x)
            T.copy(x, Y)

    with pytest.raises(TileError, match="argument B is no array but of type NoneType"):
        main(np.zeros((8, 64), np.float32), None, np.zeros(64, np.float32))


@pytest.mark.slow
def test_several_launches_of_which_none_touches_a_tensor():
    @tile_eg.jit
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32"), S: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            x = T.alloc_shared((64,), "float32")
            T.copy(X, x)
            T.copy(x, Y)
        with T.Kernel(1):
            y = T.alloc_shared((64,), "float32")
            T.copy(Y, y)
            for i in T.Parallel(64):
                y[i] = y[i] + 1.0
            T.copy(y, Y)

    y = np.zeros(64, np.float32)
    main(X, y, None)
    np.testing.assert_array_equal(y, X + 1)
