"""Extent lists with lengths that only the kernel knows, as AscendNPU-IR's authors write tails."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.python.written import prim_func
from tile_eg.errors import TileError


@pytest.mark.slow
def test_a_product_of_what_is_left_of_each_side() -> None:
    M, N, K, bm, bn, bk = 40, 50, 44, 32, 32, 32

    @T.prim_func
    def main(A: T.Tensor((K, M), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, bm) * T.ceildiv(N, bn), is_npu=True) as (cid, _):
            bx = cid // T.ceildiv(N, bn) * bm
            by = cid % T.ceildiv(N, bn) * bn
            a = T.alloc_shared((bk, bm), "float16")
            b = T.alloc_shared((bn, bk), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            tm = T.min(bm, M - bx)
            tn = T.min(bn, N - by)
            for i in T.serial(T.ceildiv(K, bk)):
                tk = T.min(bk, K - i * bk)
                T.copy(A[i * bk, bx], a, [tk, tm])
                T.copy(B[by, i * bk], b, [tn, tk])
                T.gemm(a, b, c, [tm, tk, tn], initC=(i == 0), a_transpose=True, b_transpose=True)
            T.copy(c, C[bx, by], [tm, tn])

    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, s).astype(np.float16) for s in ((K, M), (N, K)))
    got = tile_eg.compile(main, out_idx=[-1])(a, b)
    np.testing.assert_allclose(got, a.astype(np.float32).T @ b.astype(np.float32).T, rtol=1e-3, atol=1e-3)


LENGTHS = """
@T.prim_func
def f(X: T.Tensor((4, 3, 64), "float32"), n: T.Tensor((4,), "int32"), Y: T.Tensor((4, 3, 64), "float32")):
    with T.Kernel(4, is_npu=True) as (cid, _):
        x = T.alloc_shared(({shape}), "float32")
        {before}
        T.copy(X[cid, 1, 0], x, [{extents}])
        T.vmul(x, 2.0, x)
        T.copy(x, Y[cid, 1, 0], [{extents}])
"""


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize(("shape", "extents", "before"), [
    ("64,", "1, n[cid]", "pass"),
    ("64,", "n[cid]", "pass"),
    ("1, 64", "1, n[cid]", "pass"),
    ("1, 64", "1, 1, T.min(n[cid], 48)", "pass"),
    ("64,", "n[cid]", "T.pipe_barrier('v')"),
])  # fmt: skip
def test_a_length_that_is_read(shape: str, extents: str, before: str) -> None:
    text = LENGTHS.format(shape=shape, extents=extents, before=before)
    if before != "pass":  # kept as written
        apart = "        T.barrier_all()\n"
        text = text.replace("        T.vmul(x, 2.0, x)", f"{apart}        T.tile.mul(x, x, 2.0)\n{apart}")
    x = np.random.default_rng(0).uniform(-1, 1, (4, 3, 64)).astype(np.float32)
    n, y = np.array([5, 48, 1, 16], np.int32), np.zeros_like(x)
    tile_eg.compile(prim_func(text))(x, n, y)
    want = np.zeros_like(x)
    for b, count in enumerate(n):
        want[b, 1, :count] = 2 * x[b, 1, :count]
    np.testing.assert_array_equal(y, want)


def test_more_extents_than_dimensions_are_an_error() -> None:
    text = LENGTHS.format(shape="64,", extents="1, 1, 1, n[cid]", before="pass")
    with pytest.raises(TileError, match="4 extents do not fit X, which has 3 dimensions"):
        tile_eg.compile(prim_func(text))


def rows_of(M: int, n: int, rows: int = 32):
    """Sums over rows: how many rows a tile has is known when the kernel is read, how many columns when it runs."""

    @T.prim_func
    def main(X: T.Tensor((M, n), "float32"), Y: T.Tensor((1, n), "float32")):
        with T.Kernel(1) as _:
            x, y = T.alloc_shared((rows, 32), "float32"), T.alloc_shared((1, 32), "float32")
            for i in T.serial(T.ceildiv(n, 32)):
                w = T.min(32, n - i * 32)
                T.clear(y)
                for k in T.serial(T.ceildiv(M, rows)):
                    h = T.min(rows, M - k * rows)
                    T.copy(X[k * rows : k * rows + h, i * 32 : i * 32 + w], x)
                    for j in T.serial(h):
                        T.vadd(x[j : j + 1, :], y, y)
                T.copy(y, Y[0:1, i * 32 : i * 32 + w])

    return tile_eg.compile(main, out_idx=[-1], effort="none")


@pytest.mark.slow
def test_a_length_that_is_a_number_beside_one_that_is_known_at_run_time() -> None:
    x = np.random.default_rng(0).integers(-8, 8, (17, 70)).astype(np.float32)
    np.testing.assert_array_equal(rows_of(17, 70)(x), x.sum(0, keepdims=True))


@pytest.mark.slow
def test_statements_that_make_too_long_a_chain_are_done_in_order() -> None:
    x = np.random.default_rng(0).integers(-8, 8, (2048, 16)).astype(np.float32)
    with pytest.warns(tile_eg.errors.TileWarning, match="longer chain of operations"):
        np.testing.assert_array_equal(rows_of(2048, 16)(x), x.sum(0, keepdims=True))


@pytest.mark.slow
def test_the_first_elements_of_the_only_row_of_a_buffer() -> None:
    """`y[0, :n]` is what `y[0:1, :n]` is."""
    m, n = 39, 70

    @tile_eg.jit(out_idx=[-1], effort="none")
    @T.prim_func
    def sums(X: T.Tensor((m, n), "float32"), Y: T.Tensor((1, n), "float32")):
        with T.Kernel(T.ceildiv(n, 32)) as b:
            x, y = T.alloc_shared((32, 32), "float32"), T.alloc_shared((1, 32), "float32")
            w = T.min(32, n - b * 32)
            T.clear(y)
            for k in T.serial(T.ceildiv(m, 32)):
                h = T.min(32, m - k * 32)
                T.copy(X[k * 32 : k * 32 + h, b * 32 : b * 32 + w], x)
                T.reduce_sum(x[:h, :], y, dim=0, clear=False)
            T.copy(y[0, :w], Y[0, b * 32 : b * 32 + w])

    x = np.random.default_rng(0).integers(-8, 8, (m, n)).astype(np.float32)
    np.testing.assert_array_equal(sums(x), x.sum(0, keepdims=True))
