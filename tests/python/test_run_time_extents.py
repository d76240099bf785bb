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
