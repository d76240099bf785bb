"""Kernels that are done in the order of their statements: what is reduced there is what exists, however that came about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

pytestmark = [pytest.mark.slow(but=2), pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")]
M, N, BN = 5, 75, 32


def below_zero(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-3, -1, shape).astype(np.float32)


def picking(from_tensor: bool) -> Any:
    """y[j] = table[at[j] + 3], and the largest of each 32."""

    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def main(
        W: T.Tensor((104,), "float32"), At: T.Tensor((71,), "int32"), Y: T.Tensor((71,), "float32"), R: T.Tensor((3,), "float32"),
    ):  # fmt: skip
        with T.Kernel(3) as cid:
            w = T.alloc_shared((104,), "float32")
            at = T.alloc_shared((BN,), "int32")
            y = T.alloc_shared((BN,), "float32")
            m = T.alloc_shared((1,), "float32")
            T.copy(W, w)
            T.copy(At[cid * BN], at)
            T.printf("")
            T.tile.add(at, at, 3)
            for j in T.Parallel(BN):
                y[j] = W[at[j]] if from_tensor else w[at[j]]
            T.reduce_max(y, m, dim=-1)
            T.copy(y, Y[cid * BN])
            T.copy(m, R[cid])

    return main


@pytest.mark.slow
@pytest.mark.parametrize("from_tensor", [False, True])
def test_elements_at_computed_places_are_picked_and_those_at_none_take_no_part(from_tensor: bool) -> None:
    w, at = below_zero(104), np.random.default_rng(1).integers(1, 100, 71).astype(np.int32)
    w[[0, 3]] = 7  # which is where zeros behind the end would point to
    found, largest = picking(from_tensor)(w, at)
    np.testing.assert_array_equal(found, w[at + 3])
    np.testing.assert_array_equal(largest, [w[at + 3][k : k + BN].max() for k in range(0, 71, BN)])


def test_a_computed_place_outside_is_a_finding_with_its_line() -> None:
    with pytest.raises(TileError, match=r"(?s)out_of_bounds.*y\[j\] = W\[at\[j\]\].*W\[153\]"):
        picking(True)(below_zero(104), np.full(71, 150, np.int32))


def test_a_tile_that_is_loaded_or_filled_has_as_many_elements_as_the_arm_that_was_taken() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), F: T.Tensor((M,), "int32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(M) as cid:
            x = T.alloc_shared((BN,), "float32")
            m = T.alloc_shared((1,), "float32")
            T.tile.fill(m, 0)
            for k in T.serial(T.ceildiv(N, BN)):
                if k % 2 == F[cid]:
                    T.copy(X[cid, k * BN], x)
                else:
                    T.tile.fill(x, 0.5)
                T.reduce_sum(x, m, dim=-1, clear=False)
            T.copy(m, Y[cid])

    x, f = below_zero(M, N), np.array([0, 1, 1, 0, 1], np.int32)
    parts = [[x[r, k * BN :][:BN].sum() if k % 2 == f[r] else BN / 2 for k in range(3)] for r in range(M)]
    np.testing.assert_allclose(main(x, f), np.sum(parts, 1), rtol=1e-5)


def test_what_an_earlier_trip_left_in_a_tile_is_not_taken_for_what_stood_there_before_the_loop() -> None:
    with pytest.raises(TileError, match="how much of x exists differs from trip to trip"):
        @tile_eg.jit(out_idx=[-1])
        @T.prim_func
        def main(X: T.Tensor((M, N), "float32"), F: T.Tensor((M,), "int32"), Y: T.Tensor((M,), "float32")):
            with T.Kernel(M) as cid:
                x = T.alloc_shared((BN,), "float32")
                m = T.alloc_shared((1,), "float32")
                T.tile.fill(m, -1e30)
                T.tile.fill(x, -5000.0)
                for k in T.serial(4):
                    if k % 2 == F[cid]:
                        T.copy(X[cid, k * BN], x)
                    T.reduce_max(x, m, dim=-1, clear=False)
                T.copy(m, Y[cid])


@pytest.mark.parametrize("cleared", [True, False])
def test_a_window_of_which_nothing_exists_leaves_a_maximum_alone(cleared: bool) -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), L: T.Tensor((M,), "int32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(M) as cid:
            x = T.alloc_shared((BN,), "float32")
            m = T.alloc_shared((1,), "float32")
            s = T.alloc_shared((1,), "float32")
            T.tile.fill(m, -1e30)
            for k in T.serial(T.ceildiv(L[cid], BN)):
                T.copy(X[cid, k * BN : T.min(k * BN + BN, L[cid])], x)
                if cleared:
                    T.reduce_max(x, s, dim=-1)
                    T.tile.max(m, m, s)
                else:
                    T.reduce_max(x, m, dim=-1, clear=False)
            T.copy(m, Y[cid])

    x, lengths = below_zero(M, N), np.array([0, 1, 64, 75, 170], np.int32)
    np.testing.assert_array_equal(main(x, lengths), [x[r, :n].max(initial=np.float32(-1e30)) for r, n in enumerate(lengths)])


def test_a_variable_that_changes_does_not_change_what_was_loaded_by_it() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), L: T.Tensor((M,), "int32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(M) as cid:
            x = T.alloc_shared((N,), "float32")
            m = T.alloc_shared((1,), "float32")
            n = T.alloc_var("int32", init=10)
            if L[cid] > 2:
                n = L[cid]
            T.copy(X[cid, 0 : T.min(n, N)], x[0 : T.min(n, N)])
            n = 60
            T.reduce_max(x, m, dim=-1)
            T.copy(m, Y[cid])

    x, lengths = below_zero(M, N), np.array([1, 5, 7, 20, 75], np.int32)
    np.testing.assert_array_equal(main(x, lengths), [x[r, : n if n > 2 else 10].max() for r, n in enumerate(lengths)])


def test_a_number_may_be_used_behind_the_loop_that_reads_it() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), L: T.Tensor((M,), "int32"), Y: T.Tensor((1,), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((N,), "float32")
            m = T.alloc_shared((1,), "float32")
            for r in T.serial(M):
                n = L[r]
                if n > 0:
                    T.printf("")
                T.copy(X[r, 0 : T.min(n, N)], x[0 : T.min(n, N)])
            T.reduce_max(x, m, dim=-1)
            T.copy(m, Y)

    x = below_zero(M, N)
    assert main(x, np.array([75, 0, 3, 4, 6], np.int32)) == x[-1, :6].max()


def test_elements_are_put_where_indices_say_as_far_as_there_are_some() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((71,), "float32"), At: T.Tensor((71,), "int32"), Y: T.Tensor((3, 64), "float32")):
        with T.Kernel(3) as cid:
            x = T.alloc_shared((BN,), "float32")
            at = T.alloc_shared((BN,), "int32")
            y = T.alloc_shared((64,), "float32")
            T.copy(X[cid * BN], x)
            T.copy(At[cid * BN], at)
            T.printf("")
            T.tile.fill(y, -1.0)
            for j in T.Parallel(BN):
                y[at[j]] = x[j] * 2
            T.copy(y, Y[cid, 0])

    x, at = below_zero(71), np.arange(5, 76, dtype=np.int32) % 64
    expected = np.full((3, 64), -1, np.float32)
    expected[np.arange(71) // BN, at] = x * 2
    np.testing.assert_array_equal(main(x, at), expected)


def test_a_transposed_tile_ends_where_its_rows_did() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((13, 21), "float32"), Y: T.Tensor((21,), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((16, 32), "float32")
            y = T.alloc_shared((32, 16), "float32")
            m = T.alloc_shared((32,), "float32")
            T.copy(X[0, 0], x)
            T.printf("")
            T.tile.transpose(y, x)
            T.reduce_max(y, m, dim=1)
            T.copy(m, Y[0])

    x = below_zero(13, 21)
    np.testing.assert_array_equal(main(x), x.max(0))
