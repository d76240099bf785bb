"""Loops that end where only run time knows: in kernels that are kept, and in those that are done in order."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

pytestmark = [pytest.mark.slow(but=2), pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")]
A = np.arange(8 * 16, dtype=np.float32).reshape(8, 16)
STOPS = [np.array(s, np.int32) for s in ([1, 2, 0, -1, 3, 3, -1, 2], [-1] * 8, [1] * 8)]


def before_the_first(stops: np.ndarray) -> np.ndarray:
    return A[: int(np.argmax(np.append(stops, -1) < 0))].sum(0, keepdims=True)


@pytest.mark.parametrize("stops", STOPS)
def test_a_kept_loop_is_left(stops: np.ndarray) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), S: T.Tensor((8,), "int32"), Y: T.Tensor((1, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((1, 16), "float32")
            y = T.alloc_ub((1, 16), "float32")
            with T.Scope("V"):
                T.tile.fill(y, 0.0)
                for i in T.serial(8):
                    if S[i] < 0:
                        T.loop_break()
                    T.barrier_all()
                    T.copy(X[i, 0], x)
                    T.barrier_all()
                    T.tile.add(y, y, x)
                T.barrier_all()
                if vid == 0:
                    T.copy(y, Y)

    np.testing.assert_array_equal(main(A, stops), before_the_first(stops))


def test_a_macro_leaves_the_loop_around_it_and_the_rest_of_itself() -> None:
    def stop(test, y):
        if test:
            T.loop_break()
        T.tile.add(y, y, 1.0)

    @T.macro
    def added(S, i, y):
        stop(S[i] < 0, y)
        T.tile.add(y, y, 1.0)

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(S: T.Tensor((8,), "int32"), Y: T.Tensor((1, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            y = T.alloc_ub((1, 16), "float32")
            with T.Scope("V"):
                T.tile.fill(y, 0.0)
                for i in T.serial(8):
                    added(S, i, y)
                    T.tile.add(y, y, 1.0)
                T.barrier_all()
                if vid == 0:
                    T.copy(y, Y)

    assert (main(STOPS[0]) == 3 * 3).all()


@pytest.mark.parametrize("stops", STOPS)
def test_a_loop_without_flags_is_left_and_goes_on(stops: np.ndarray) -> None:
    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def main(
        X: T.Tensor((8, 16), "float32"), S: T.Tensor((8,), "int32"),
        Y: T.Tensor((1, 16), "float32"), Z: T.Tensor((1, 16), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=1, is_npu=True) as _:
            x = T.alloc_shared((1, 16), "float32")
            y = T.alloc_shared((1, 16), "float32")
            z = T.alloc_shared((1, 16), "float32")
            T.clear(y)
            T.clear(z)
            for i in T.serial(8):
                if S[i] < 0:
                    break
                T.copy(X[i, 0], x)
                T.tile.add(y, y, x)
            for i in T.serial(8):
                if S[i] < 0:
                    continue
                T.copy(X[i, 0], x)
                T.tile.add(z, z, x)
            T.copy(y, Y)
            T.copy(z, Z)

    y, z = main(A, stops)
    np.testing.assert_array_equal(y, before_the_first(stops))
    np.testing.assert_array_equal(z, A[stops >= 0].sum(0, keepdims=True))


@pytest.mark.parametrize("count", [0, 3, 8])
def test_while_runs_as_often_as_is_read(count: int) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), N: T.Tensor((1,), "int32"), Y: T.Tensor((1, 16), "float32")):
        with T.Kernel(1, threads=1, is_npu=True) as _:
            x = T.alloc_shared((1, 16), "float32")
            y = T.alloc_shared((1, 16), "float32")
            T.clear(y)
            i = T.alloc_var("int32", init=0)
            while True:
                if i >= N[0]:
                    break
                T.copy(X[i, 0], x)
                T.tile.add(y, y, x)
                i = i + 1
            T.copy(y, Y)

    np.testing.assert_array_equal(main(A, np.array([count], np.int32)), A[:count].sum(0, keepdims=True))


@pytest.mark.parametrize("stops", STOPS)
def test_a_scope_inside_of_a_loop_is_left_at_once(stops: np.ndarray) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), S: T.Tensor((8,), "int32"), Y: T.Tensor((1, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((1, 16), "float32")
            y = T.alloc_ub((1, 16), "float32")
            with T.Scope("V"):
                T.tile.fill(y, 0.0)
            for i in T.serial(8):
                with T.Scope("V"):
                    if S[i] < 0:
                        break
                    T.barrier_all()
                    T.copy(X[i, 0], x)
                    T.barrier_all()
                    T.tile.add(y, y, x)
            with T.Scope("V"):
                T.barrier_all()
                if vid == 0:
                    T.copy(y, Y)

    np.testing.assert_array_equal(main(A, stops), before_the_first(stops))


def test_a_loop_over_persistent_tiles_is_not_left() -> None:
    def kept() -> None:
        @tile_eg.jit(out_idx=[-1])
        @T.prim_func
        def main(X: T.Tensor((8, 16), "float32"), S: T.Tensor((8,), "int32"), Y: T.Tensor((8, 16), "float32")):
            with T.Kernel(2, is_npu=True) as (cid, vid):
                x = T.alloc_ub((1, 16), "float32")
                with T.Scope("V"):
                    for k in T.serial(2):
                        if S[k] > 4:
                            break
                        for bx, by in T.Persistent([4, 2], 2, cid):
                            if S[bx] < 0:
                                break
                            T.barrier_all()
                            T.copy(X[bx * 2 + by, 0], x)
                            T.barrier_all()
                            T.copy(x, Y[bx * 2 + by, 0])

    with pytest.raises(TileError, match="this loop cannot be left"):
        kept()
