"""A kernel that prints is done in the order of its statements, and computes what it computes without printing: what lies beyond a
tensor's end takes no part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

pytestmark = [pytest.mark.slow(but=2), pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")]
BM, BN = 8, 64
SIZES = [(7, 33), (13, 64), (21, 40)]


def negative(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(0).uniform(-3, -1, shape).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_softmax_that_prints(size: tuple[int, int]) -> None:
    M, N = size

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BM), threads=2, is_npu=True) as cid:
            x = T.alloc_shared((BM, BN), "float32")
            m = T.alloc_shared((BM,), "float32")
            T.copy(X[cid * BM, 0], x)
            T.printf("")
            T.reduce_max(x, m, dim=1)
            for i, j in T.Parallel(BM, BN):
                x[i, j] = T.exp(x[i, j] - m[i])
            T.reduce_sum(x, m, dim=1)
            for i, j in T.Parallel(BM, BN):
                x[i, j] = x[i, j] / m[i]
            T.copy(x, Y[cid * BM, 0])

    x = negative(size)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(main(x), e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_columns_that_are_added_up_while_it_prints(size: tuple[int, int]) -> None:
    M, N = size

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((T.ceildiv(M, BM), N), "float32")):
        with T.Kernel(T.ceildiv(M, BM), threads=2, is_npu=True) as cid:
            x = T.alloc_shared((BM, BN), "float32")
            s = T.alloc_shared((1, BN), "float32")
            T.copy(X[cid * BM, 0], x)
            T.printf("")
            T.tile.add(x, x, 1.0)
            T.reduce_sum(x, s, dim=0)
            T.copy(s, Y[cid, 0])

    x = negative(size)
    np.testing.assert_allclose(main(x), np.stack([(x[i : i + BM] + 1).sum(0) for i in range(0, M, BM)]), rtol=1e-5)


def place_of_the_largest(padded: bool) -> Any:
    """Rows that are gathered one by one, so that it is not followed which of them exist."""

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((5, 16), "float32"), Y: T.Tensor((1, 16), "float32")):
        with T.Kernel(1, threads=2, is_npu=True) as _:
            x = T.alloc_shared((BM, 16), "float32")
            s = T.alloc_shared((1, 16), "float32")
            T.printf("")
            for i in T.serial(BM):
                if padded:
                    T.copy(X[i, 0], x[i, :], pad_value=-T.infinity())
                else:
                    T.copy(X[i, 0], x[i, :])
            T.reduce_max(x, s, dim=0)
            T.copy(s, Y)

    return main


def test_where_it_is_not_followed_what_exists_an_error_says_what_to_write() -> None:
    with pytest.raises(TileError, match="is not followed") as error:
        place_of_the_largest(False)(negative((5, 16)))
    assert "T.reduce_max(x, s, dim=0)" in str(error.value) and "help: say what stands there: T.copy" in str(error.value)


def test_a_padding_of_the_authors_takes_part() -> None:
    x = negative((5, 16))
    np.testing.assert_array_equal(place_of_the_largest(True)(x), x.max(0, keepdims=True))


def test_what_an_author_writes_beyond_the_end_is_not_left_out() -> None:
    with pytest.raises(TileError, match="how much of x exists is not followed"):
        @tile_eg.jit(out_idx=[-1])
        @T.prim_func
        def main(X: T.Tensor((BM, 33), "float32"), Y: T.Tensor((1, BM), "float32")):
            with T.Kernel(1, threads=2, is_npu=True) as _:
                x = T.alloc_shared((BM, BN), "float32")
                m = T.alloc_shared((1, BM), "float32")
                T.copy(X[0, 0], x)
                T.printf("")
                T.tile.fill(x[:, 40:64], 5.0)
                T.reduce_max(x, m, dim=1)
                T.copy(m, Y)


def test_behind_a_branch_exists_what_exists_behind_the_arm_that_was_taken() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((BM, 33), "float32"), W: T.Tensor((BM, BN), "float32"), Y: T.Tensor((2, BM), "float32")):
        with T.Kernel(2, threads=2, is_npu=True) as cid:
            x = T.alloc_shared((BM, BN), "float32")
            m = T.alloc_shared((1, BM), "float32")
            T.printf("")
            if cid == 0:
                T.copy(X[0, 0], x)
            else:
                T.copy(W[0, 0], x)
            T.reduce_max(x, m, dim=1)
            T.copy(m, Y[cid, 0])

    x, w = negative((BM, 33)), negative((BM, BN)) - 2
    np.testing.assert_array_equal(main(x, w), [x.max(1), w.max(1)])


def test_arms_behind_which_the_same_exists() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(X: T.Tensor((BM, 33), "float32"), W: T.Tensor((BM, 33), "float32"), Y: T.Tensor((2, BM), "float32")):
        with T.Kernel(2, threads=2, is_npu=True) as cid:
            x = T.alloc_shared((BM, BN), "float32")
            m = T.alloc_shared((1, BM), "float32")
            T.printf("")
            if cid == 0:
                T.copy(X[0, 0], x)
            else:
                T.copy(W[0, 0], x)
            T.reduce_max(x, m, dim=1)
            T.copy(m, Y[cid, 0])

    x, w = negative((BM, 33)), negative((BM, 33)) - 1
    np.testing.assert_array_equal(main(x, w), np.stack([x.max(1), w.max(1)]))


def test_a_tile_that_is_loaded_for_the_next_trip_may_end_early() -> None:
    with pytest.raises(TileError, match="differs from trip to trip"):
        @tile_eg.jit(out_idx=[-1])
        @T.prim_func
        def main(X: T.Tensor((BM, 3 * BN - 20), "float32"), Y: T.Tensor((2, BM), "float32")):
            with T.Kernel(1, threads=2, is_npu=True) as _:
                x = T.alloc_shared((BM, BN), "float32")
                m = T.alloc_shared((1, BM), "float32")
                T.printf("")
                T.copy(X[0, 0], x)
                for k in T.serial(2):
                    T.reduce_max(x, m, dim=1)
                    T.copy(m, Y[k, 0])
                    T.copy(X[0, (k + 1) * BN], x)


@tile_eg.jit(out_idx=[-1])
def parted(how: str, N: int) -> Any:
    """Sums of rows of which a buffer holds several tiles, or rows that are written one by one."""

    @T.prim_func
    def slots(X: T.Tensor((13, N), "float32"), Y: T.Tensor((13, 1), "float32")):
        with T.Kernel(2) as cid:
            x = T.alloc_shared((2, 8, 64), "float32")
            s = T.alloc_shared((8, 1), "float32")
            t = T.alloc_shared((8, 1), "float32")
            T.printf("")
            T.clear(s)
            for k in T.serial(T.ceildiv(N, 64)):
                T.copy(X[cid * 8, k * 64], x[k % 2, :, :])
                T.tile.exp(x[k % 2, :, :], x[k % 2, :, :])
                T.reduce_sum(x[k % 2, :, :], t, dim=1)
                T.tile.add(s, s, t)
            T.copy(s, Y[cid * 8, 0])

    @T.prim_func
    def rows(X: T.Tensor((13, N), "float32"), Y: T.Tensor((13, 1), "float32")):
        with T.Kernel(2) as cid:
            x = T.alloc_shared((8, 128), "float32")
            y = T.alloc_shared((8, 128), "float32")
            s = T.alloc_shared((8, 1), "float32")
            T.printf("")
            T.clear(x)
            for i in T.serial(8):
                T.copy(X[cid * 8 + i, 0], x[i, :])
            for i in T.serial(8):
                T.tile.exp(y[i, :], x[i, :])
            T.reduce_sum(y, s, dim=1)
            T.copy(s, Y[cid * 8, 0])

    @T.prim_func
    def some_rows(X: T.Tensor((13, N), "float32"), Y: T.Tensor((13, 1), "float32")):
        with T.Kernel(2) as cid:
            x = T.alloc_shared((8, 128), "float32")
            s = T.alloc_shared((8, 1), "float32")
            T.printf("")
            T.tile.fill(x, 7.0)
            for i in T.serial(4):
                T.copy(X[cid * 8 + i, 0], x[i, :])
            T.reduce_sum(x, s, dim=1)
            T.copy(s, Y[cid * 8, 0])

    return {"slots": slots, "rows": rows, "some rows": some_rows}[how]


@pytest.mark.parametrize("how", ["slots", "rows"])
def test_what_exists_of_a_window_or_of_each_row_is_followed(how: str) -> None:
    x = negative((13, 100))
    np.testing.assert_allclose(parted(how, 100)(x), np.exp(x).sum(1, keepdims=True), rtol=1e-5)


def test_rows_of_which_more_exists_than_of_others_are_refused() -> None:
    with pytest.raises(TileError, match="how much of x exists is not followed"):
        parted("some rows", 100)


def of_picked(how: str) -> Any:
    """A kernel that adds up rows, each made with an index of which a tensor's end cuts off some."""

    @T.prim_func
    def kernel(W: T.Tensor((8, 16), "float32"), I: T.Tensor((12,), "int32"), S: T.Tensor((2, 16), "float32")):  # noqa: N803, E741
        with T.Kernel(2) as block:
            at, x, s = T.alloc_ub((8,), "int32"), T.alloc_ub((8, 16), "float32"), T.alloc_ub((16,), "float32")
            T.copy(I[block * 8], at)
            T.printf("")
            if how == "compared":
                for i, j in T.Parallel(8, 16):
                    x[i, j] = T.if_then_else(at[i] < 5, 1.0, 2.0)
            else:
                for i in T.serial(8):
                    T.copy(W[at[i], 0], x[i, :])
            T.reduce_sum(x, s, dim=0)
            T.copy(s, S[block, 0])

    return tile_eg.compile(kernel, out_idx=[2])


def test_rows_that_are_compared_end_where_what_is_compared_does() -> None:
    at = np.arange(12, dtype=np.int32) % 8
    rows = np.where(at < 5, 1, 2)
    found = of_picked("compared")(np.ones((8, 16), np.float32), at)
    np.testing.assert_array_equal(found, np.repeat([[rows[:8].sum()], [rows[8:].sum()]], 16, axis=1))


def test_rows_that_are_picked_from_beyond_an_end_are_not_added_up() -> None:
    with pytest.raises(TileError, match="how much of x exists is not followed"):
        of_picked("loaded")


@pytest.mark.slow
def test_rows_of_no_whole_blocks_that_end_early_are_followed_through_loops_and_columns() -> None:
    rows, cols = 13, 37

    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def kernel(
        X: T.Tensor((rows, cols), "float32"), n: T.Tensor((1,), "int32"), P: T.Tensor((rows, cols), "float32"),
        D: T.Tensor((rows, 1), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as b:
            x = T.alloc_shared((8, cols), "float32")
            y = T.alloc_shared((8, cols), "float32")
            m = T.alloc_fragment((8,), "float32")
            d = T.alloc_fragment((8, 1), "float32")
            if n[0] > 0:
                T.copy(X[b * 8, 0], x)
                T.reduce_max(x, m, dim=1)
                T.reduce_sum(x, d, dim=1)
                for i, j in T.Parallel(8, cols):
                    y[i, j] = T.exp(x[i, j] - m[i])
                    x[i, j] -= d[i, 0]
                T.reduce_sum(y, m, dim=1)
                T.reduce_sum(x, d, dim=1)
                for i, j in T.Parallel(8, cols):
                    y[i, j] /= m[i]
                T.copy(y, P[b * 8, 0])
                T.copy(d, D[b * 8, 0])

    x = np.random.default_rng(0).uniform(-1, 1, (rows, cols)).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    softmax, rest = kernel(x, np.ones(1, np.int32))
    np.testing.assert_allclose(softmax, e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(rest, (1 - cols) * x.sum(1, keepdims=True), rtol=1e-4)


def over_rows(word: str, pad: float | None) -> Any:
    """Rows that are loaded one by one, some of them behind the tensor's end, joined by a word."""

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def kernel(X: T.Tensor((13, 40), "float32"), n: T.Tensor((1,), "int32"), Y: T.Tensor((2, 40), "float32")):
        with T.Kernel(2) as b:
            row = T.alloc_shared((40,), "float32")
            s = T.alloc_shared((40,), "float32")
            T.fill(s, -100.0)
            if n[0] > 0:
                for i in T.serial(8):
                    T.copy(X[b * 8 + i, 0], row, pad_value=pad)
                    getattr(T.tile, word)(s, s, row)
            T.copy(s, Y[b, 0])

    return kernel


NEGATIVE = np.random.default_rng(0).uniform(-9, -5, (13, 40)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(("word", "pad"), [("add", None), ("max", -np.inf)])
def test_rows_behind_the_end_add_nothing_and_may_be_padded(word: str, pad: float | None) -> None:
    join = {"add": lambda p: p.sum(0) - 100, "max": lambda p: p.max(0)}[word]
    got = over_rows(word, pad)(NEGATIVE, np.ones(1, np.int32))
    np.testing.assert_allclose(got, [join(NEGATIVE[:8]), join(NEGATIVE[8:])], rtol=1e-5)


def test_a_maximum_with_rows_behind_the_end_is_told() -> None:
    with pytest.raises(TileError, match="how much of s exists differs from trip to trip"):
        over_rows("max", None)(NEGATIVE, np.ones(1, np.int32))
