"""Tensors that a kernel writes and reads: a buffer that the tensor shows to the caller, who finds in it what was written."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError, TileWarning

X = np.random.default_rng(0).uniform(-1, 1, (64, 64)).astype(np.float32)


def handed_on(read_row: int = 0, dtype: str = "float32", parts: int = 1):
    """x * 2 goes to W; what comes back from there, plus 1, is C. It is read in so many parts of columns."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), W: T.Tensor((64, 64), dtype), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(2) as cid:
            x = T.alloc_shared((32, 64), "float32")
            y = T.alloc_shared((32, 64 // parts), "float32")
            T.copy(A[cid * 32, 0], x)
            x[:, :] = x * 2.0
            T.copy(x, W[cid * 32, 0])
            for i in T.serial(parts):
                T.copy(W[cid * 32 + read_row, i * (64 // parts)], y)
                y[:, :] = y + 1.0
                T.copy(y, C[cid * 32, i * (64 // parts)])

    return main


@pytest.mark.slow
def test_what_was_written_is_read() -> None:
    assert (tile_eg.compile(handed_on(), out_idx=[-1], workspace_idx=[1])(X) == X * 2 + 1).all()


@pytest.mark.slow
def test_the_callers_array_holds_what_was_written() -> None:
    w = np.zeros((64, 64), np.float32)
    tile_eg.compile(handed_on(), out_idx=[-1])(X, w)
    assert (w == X * 2).all()


@pytest.mark.slow
def test_a_narrow_tensor_rounds_what_it_hands_on() -> None:
    got = tile_eg.compile(handed_on(dtype="float16"), out_idx=[-1], workspace_idx=[1])(X)
    assert (got == (X * 2).astype(np.float16).astype(np.float32) + 1).all()


@pytest.mark.slow
def test_parts_side_by_side_are_read_as_one() -> None:
    assert (tile_eg.compile(handed_on(parts=4), out_idx=[-1], workspace_idx=[1])(X) == X * 2 + 1).all()


@pytest.mark.slow
def test_a_window_that_is_not_the_one_that_was_written_says_so() -> None:
    made, w = tile_eg.compile(handed_on(read_row=1), out_idx=[-1]), np.zeros((64, 64), np.float32)
    told = pytest.warns(UserWarning, match="`W` is written and read in this kernel, in windows that differ")
    with told, pytest.raises(TileError, match="block_race"):  # the last row is another block's
        made(X, w)


@T.prim_func
def doubled_in_place(W: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1) as _:
        x = T.alloc_shared((64,), "float32")
        T.copy(W[0], x)
        T.copy(x, C[0])
        T.tile.mul(x, x, 2.0)
        T.copy(x, W[0])


@pytest.mark.slow
def test_a_tensor_that_is_read_before_it_is_written_begins_with_what_the_caller_put_there() -> None:
    w = np.arange(64, dtype=np.float32)
    before = tile_eg.compile(doubled_in_place, out_idx=[-1])(w)
    assert (before == np.arange(64)).all() and (w == 2 * np.arange(64)).all()


def test_a_workspace_that_is_read_before_it_is_written_says_so() -> None:
    with pytest.raises(TileError, match="`W` is read before it is written, and no call gives it"):
        tile_eg.compile(doubled_in_place, out_idx=[-1], workspace_idx=[0])


@pytest.mark.slow
def test_rows_are_written_where_they_were_read() -> None:
    @T.prim_func
    def main(X: T.Tensor((32, 64), "float32")):
        with T.Kernel(4) as cid:
            x = T.alloc_shared((8, 32), "float32")
            for i in T.serial(8):
                T.copy(X[cid * 8 + i, 32:], x[i, :])
            T.tile.add(x, x, 1.0)
            for i in T.serial(8):
                T.copy(x[i, :], X[cid * 8 + i, 32:])

    a = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    wanted = a.copy()
    wanted[:, 32:] += 1
    tile_eg.compile(main)(a)
    assert (a == wanted).all()


def test_a_workspace_that_nobody_sees_is_not_stored() -> None:
    kernel = tile_eg.compile(handed_on(), out_idx=[-1], workspace_idx=[1])
    assert [t.name for t in kernel.compiled.tensors] == ["A", "C"]


def test_a_workspace_that_the_caller_gives_is_stored() -> None:
    kernel = tile_eg.compile(handed_on(), out_idx=[-1])
    assert [t.name for t in kernel.compiled.tensors] == ["A", "W", "C"]


def in_columns(init: bool):
    """A product, two halves of its columns one after the other, handed on as a whole."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32"),
        W: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1) as _:
            a = T.alloc_L1((64, 64), "float16")
            b = T.alloc_L1((32, 64), "float16")
            c = T.alloc_L0C((64, 32), "float32")
            x = T.alloc_ub((64, 64), "float32")
            T.copy(A[0, 0], a)
            if not init:
                T.clear(c)
            for i in T.serial(2):
                T.copy(B[i * 32, 0], b)
                T.gemm_v0(a, b, c, transpose_B=True, init=init)
                T.copy(c, W[0, i * 32])
            T.copy(W[0, 0], x)
            T.copy(x, C[0, 0])

    return tile_eg.compile(main, out_idx=[2], workspace_idx=[3])


@pytest.mark.slow
def test_columns_of_a_product_that_are_handed_on_one_after_the_other_are_one_product() -> None:
    a, b = (np.random.default_rng(n).uniform(-1, 1, (64, 64)).astype(np.float16) for n in range(2))
    assert np.allclose(in_columns(init=True)(a, b), a.astype(np.float32) @ b.T.astype(np.float32), atol=1e-3)


@pytest.mark.slow
def test_a_sum_that_goes_on_from_part_to_part_is_not_merged() -> None:
    a, b = (np.random.default_rng(n).uniform(-1, 1, (64, 64)).astype(np.float16) for n in range(2))
    first, other = np.split(a.astype(np.float32) @ b.T.astype(np.float32), 2, axis=1)
    with pytest.warns(TileWarning, match="in windows that differ"):
        got = in_columns(init=False)(a, b)
    assert np.allclose(got, np.concatenate([first, first + other], axis=1), atol=1e-3)


@pytest.mark.slow
def test_a_part_that_an_element_loop_fills_is_one_of_a_tile() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), W: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((64, 64), "float32")
            y = T.alloc_shared((64, 16), "float32")
            z = T.alloc_shared((64, 16), "float32")
            T.copy(A[0, 0], x)
            T.copy(x, W[0, 0])
            for k in T.serial(4):
                T.copy(W[0, k * 16], y)
                for i, j in T.Parallel(64, 16):
                    z[i, j] = y[i, j] + 1.0
                T.copy(z, C[0, k * 16])

    assert (tile_eg.compile(main, out_idx=[-1], workspace_idx=[1])(X) == X + 1).all()


@T.prim_func
def in_parts(Q: T.Tensor((16, 64), "float16"), K: T.Tensor((256, 64), "float16"), W: T.Tensor((16, 128), "float32"),
             C: T.Tensor((16, 128), "float32")):  # fmt: skip
    with T.Kernel(1) as _:
        q, k = T.alloc_L1((16, 64), "float16"), T.alloc_L1((64, 64), "float16")
        s, x, c = T.alloc_L0C((16, 64), "float32"), T.alloc_ub((16, 128), "float32"), T.alloc_ub((16, 128), "float32")
        T.copy(Q, q)
        T.tile.fill(c, 0.0)
        for j in T.Pipelined(2, num_stages=2):
            for i in T.serial(2):
                T.copy(K[j * 128 + i * 64, 0], k)
                T.gemm_v0(q, k, s, transpose_B=True, init=True)
                T.copy(s, W[0, i * 64])
            T.copy(W, x)
            T.tile.add(c, c, x)
        T.copy(c, C)


@pytest.mark.slow
def test_slots_for_parts_are_not_slots_for_the_tile_that_they_make() -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.integers(-3, 4, (n, 64)).astype(np.float16) for n in (16, 256))
    with pytest.warns(TileWarning, match="num_stages=2 was for parts of tiles that are loaded as one here"):
        got = tile_eg.compile(in_parts, out_idx=[-1], workspace_idx=[2])(q, k)
    scores = q.astype(np.float32) @ k.T
    np.testing.assert_array_equal(got, scores[:, :128] + scores[:, 128:])
