"""Halves by hand beside a matrix product: the kernel on whole tiles, of which each vector core has a half."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.python import kernel_of
from tile_eg.frontend.python.merging import Merge, Parted
from tile_eg.ir.kernel import Assign, For, Parallel
from tile_eg.search.compiler import meaning

RNG = np.random.default_rng(0)
A, B = (RNG.uniform(-1, 1, (64, 64)).astype(np.float16) for _ in range(2))
AB = A.astype(np.float32) @ B.astype(np.float32)
PREAMBLE = 7
"""Statements of `halves` before the lines that a test writes."""


@T.macro
def multiplied(A, B, c):
    a = T.alloc_L1((64, 64), "float16")
    b = T.alloc_L1((64, 64), "float16")
    T.copy(A[0, 0], a)
    T.copy(B[0, 0], b)
    T.gemm_v0(a, b, c, init=True)


def halves(vector, compiled: bool = True):
    """A product, handed on through a workspace; `vector(W, C, x, vid)` is what the vector cores do with their half."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32"),
        W: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, is_npu=True) as (cid, vid):
            c = T.alloc_L0C((64, 64), "float32")
            multiplied(A, B, c)
            T.copy(c, W[0, 0])
            x = T.alloc_ub((32, 64), "float32")
            T.copy(W[vid * 32, 0], x)
            vector(W, C, x, vid)
            T.copy(x, C[vid * 32, 0])

    return tile_eg.compile(main, out_idx=[2], workspace_idx=[3]) if compiled else main


def value_of(kernel) -> np.ndarray:
    return meaning(kernel.kernel, {"A": A, "B": B})["C"]


@T.macro
def nothing(W, C, x, vid):
    pass


@T.macro
def by_rows(W, C, x, vid):
    m = T.alloc_ub((32,), "float32")
    T.reduce_max(x, m, dim=-1)
    for h in range(32):
        T.tile.sub(x[h, :], x[h, :], m[h])


@T.macro
def by_elements(W, C, x, vid):
    for i, j in T.Parallel(32, 64):
        x[i, j] = T.if_then_else(vid * 32 + i >= j, x[i, j], 0.0)


@T.macro
def by_fills(W, C, x, vid):
    y = T.alloc_ub((32, 64), "float32")
    T.fill(y, 1.0)
    T.tile.add(x, x, y)


def test_the_kernel_is_that_on_whole_tiles() -> None:
    kernel = halves(nothing).kernel
    assert kernel.grid == (("cid", 1),)
    assert {s.target.shape for s in kernel.body if isinstance(s, Assign)} == {(64, 64)}


@pytest.mark.parametrize(
    ("vector", "wanted"),
    [
        (nothing, AB),
        (by_rows, AB - AB.max(1, keepdims=True)),
        (by_elements, np.tril(AB)),
        (by_fills, AB + 1),
    ],
    ids=["nothing", "by_rows", "by_elements", "by_fills"],
)
def test_what_each_half_does_is_done_on_all_rows(vector, wanted: np.ndarray) -> None:
    assert np.allclose(value_of(halves(vector)), wanted, atol=1e-3)


@pytest.mark.slow
def test_the_emitted_text_computes_it() -> None:
    assert np.allclose(halves(by_rows)(A, B), AB - AB.max(1, keepdims=True), atol=1e-3)


def test_a_loop_over_the_rows_of_a_half_is_one_over_all_rows() -> None:
    assert [s.extent for s in halves(by_rows).kernel.body if isinstance(s, For)] == [64]


def test_an_element_loop_over_a_half_is_one_over_all() -> None:
    assert [s.extents for s in halves(by_elements).kernel.body if isinstance(s, Parallel)] == [(64, 64)]


@T.macro
def column_sums(W, C, x, vid):
    s = T.alloc_ub((64,), "float32")
    T.reduce_sum(x, s, dim=0)


@T.macro
def one_row(W, C, x, vid):
    for j in T.Parallel(64):
        x[3, j] = 0.0


@T.macro
def counted_from_0(W, C, x, vid):
    for i, j in T.Parallel(32, 64):
        x[i, j] = x[i, j] + i


@T.macro
def the_core(W, C, x, vid):
    T.tile.mul(x, x, vid)


@T.macro
def the_same_rows(W, C, x, vid):
    y = T.alloc_ub((32, 64), "float32")
    T.copy(W[0, 0], y)
    T.tile.add(x, x, y)


@T.macro
def carried_on(W, C, x, vid):
    s = T.alloc_ub((64,), "float32")
    T.clear(s)
    for h in range(32):
        T.tile.add(s, s, x[h, :])


@T.macro
def a_product_of_halves(W, C, x, vid):
    h = T.alloc_L1((32, 64), "float16")
    b = T.alloc_L1((64, 64), "float16")
    c = T.alloc_L0C((32, 64), "float32")
    T.copy(x, h)
    T.fill(b, 1.0)
    T.gemm_v0(h, b, c, init=True)


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        (column_sums, "each part is reduced by itself"),
        (one_row, "`x` holds one part, and here is some of that part"),
        (counted_from_0, "counts the rows of each part from 0"),
        (the_core, "`vid` stands in a number"),
        (the_same_rows, "`vid` does not say which part of `W` this is"),
        (carried_on, "goes on from row to row of each part"),
        (a_product_of_halves, "an operand of a matrix product depends on `vid`"),
    ],
)
def test_what_is_no_half_of_a_tile_says_why(vector, reason: str) -> None:
    with pytest.raises(TileError, match="halves that lie side by side") as caught:
        kernel_of(halves(vector, compiled=False))
    assert reason in caught.value.message and caught.value.help


def test_windows_that_overlap_do_not_lie_side_by_side() -> None:
    @T.macro
    def overlapping(W, C, x, vid):
        T.copy(W[vid * 16, 0], x)

    with pytest.raises(TileError, match="`vid` moves 16 for 32 elements"):
        kernel_of(halves(overlapping, compiled=False))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vector", "wanted"),
    [
        (the_core, AB * np.repeat([[0], [1]], 32, 0)),
        (the_same_rows, AB + np.vstack([AB[:32]] * 2)),
        (column_sums, AB),
    ],
    ids=["the_core", "the_same_rows", "column_sums"],
)
@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_what_is_no_half_of_a_tile_is_done_for_both_halves_in_order(vector, wanted: np.ndarray) -> None:
    assert np.allclose(halves(vector)(A, B), wanted, atol=1e-3)


def test_columns_may_be_parted_as_well() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32"),
        W: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, is_npu=True) as (cid, vid):
            c = T.alloc_L0C((64, 64), "float32")
            multiplied(A, B, c)
            T.copy(c, W[0, 0])
            x = T.alloc_ub((64, 32), "float32")
            T.copy(W[0, vid * 32], x)
            T.copy(x, C[0, vid * 32])

    assert np.allclose(value_of(tile_eg.compile(main, out_idx=[2])), AB, atol=1e-3)


def test_a_variable_in_a_quotient_is_no_window() -> None:
    from tile_eg.ir import index as ix

    with pytest.raises(Parted, match="stands in a quotient"):
        Merge("v", 2, {}).coefficient(ix.div(ix.var("v") + 3, ix.const(4)), "v")


@T.macro
def through_a_row(W, C, x, vid):
    r = T.alloc_ub((64,), "float32")
    for h in range(32):
        T.copy(x[h, :], r)
        T.tile.add(x[h, :], x[h, :], r)


def test_a_row_that_each_trip_fills_anew_belongs_to_no_half() -> None:
    assert np.allclose(value_of(halves(through_a_row)), 2 * AB, atol=2e-3)


def with_sum(at_half: bool, core: int | None = None):
    """A product, beside which each vector core adds ones, to its half of S or to one place, or one of the cores stores them."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32"), S: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            c = T.alloc_L0C((64, 64), "float32")
            multiplied(A, A, c)
            T.copy(c, C[0, 0])
            s = T.alloc_ub((32,), "float32")
            T.fill(s, 1.0)
            if core is not None:
                if vid == core:
                    T.copy(s, S[32])
            elif at_half:
                T.atomic_add(S[vid * 32], s)
            else:
                T.atomic_add(S[32], s)

    return tile_eg.compile(main)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*both vector cores")
@pytest.mark.parametrize(
    ("kernel", "ones", "others"), [((True,), 1, 1), ((False,), 2, 0), ((False, 0), 1, 0)], ids=["halves", "one place", "one core"]
)
def test_what_each_vector_core_does_to_a_sum(kernel, ones: int, others: int) -> None:
    s = np.zeros(64, np.float32)
    with_sum(*kernel)(A, np.zeros((64, 64), np.float32), s)
    assert (s[32:] == ones).all() and (s[:32] == others).all()
