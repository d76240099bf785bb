"""Fewer rows than a tile has, and loops that end where a table that they go through does: decoding with grouped heads."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
RNG = np.random.default_rng(0)


@pytest.mark.slow
def test_a_tile_of_which_only_the_first_rows_are_loaded_has_no_others() -> None:
    """Four heads in a tile of sixteen: the maximum of each column is one of four numbers."""

    @T.prim_func
    def main(
        Q: T.Tensor((3, 4, 64), "float16"), K: T.Tensor((32, 64), "float16"), S: T.Tensor((3, 4, 32), "float32"),
        M: T.Tensor((3, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(3) as b:
            q = T.alloc_shared([16, 64], "float16")
            k = T.alloc_shared([32, 64], "float16")
            c = T.alloc_fragment([16, 32], "float32")
            s = T.alloc_shared([16, 32], "float32")
            m = T.alloc_shared([32], "float32")
            T.copy(Q[b, 0:4, :], q)
            T.copy(K, k)
            T.gemm_v0(q, k, c, transpose_B=True, init=True)
            T.copy(c, s)
            T.reduce_max(s, m, dim=0)
            T.copy(m, M[b, :])
            T.copy(s[0:4, :], S[b, :, :])

    q, k = -RNG.random((3, 4, 64)).astype(np.float16), RNG.random((32, 64)).astype(np.float16)
    got = tile_eg.compile(main, out_idx=[2, 3])(q, k)
    want = q.astype(np.float32) @ k.astype(np.float32).T
    assert all(np.allclose(g, w, atol=2e-2) for g, w in zip(got, (want, want.max(1)), strict=True))


def paged_sum():
    """The sum of the pages of a table, as many as are counted."""

    @T.prim_func
    def main(
        X: T.Tensor((9, 64), "float32"), P: T.Tensor((3, 4), "int32"), N: T.Tensor((3,), "int32"), Y: T.Tensor((3, 64), "float32")
    ):
        with T.Kernel(3) as b:
            x = T.alloc_shared((64,), "float32")
            y = T.alloc_shared((64,), "float32")
            T.clear(y)
            for t in T.serial(N[b]):
                T.copy(X[P[b, t], :], x)
                y[:] = y + x
            T.copy(y, Y[b, :])

    return tile_eg.compile(main, out_idx=[3])


@pytest.mark.slow
def test_a_loop_over_a_table_ends_with_it() -> None:
    x, pages = RNG.random((9, 64), dtype=np.float32), RNG.integers(0, 9, (3, 4)).astype(np.int32)
    counts = np.array([4, 0, 3], np.int32)
    want = np.stack([x[p[:n]].sum(0) for p, n in zip(pages, counts, strict=True)])
    assert np.allclose(paged_sum()(x, pages, counts), want, atol=1e-5)


@pytest.mark.slow
def test_a_table_that_a_branch_may_leave_out_says_nothing_of_the_loop() -> None:
    @T.prim_func
    def main(
        X: T.Tensor((9, 64), "float32"), P: T.Tensor((4,), "int32"), N: T.Tensor((1,), "int32"), Y: T.Tensor((64,), "float32")
    ):
        with T.Kernel(1) as _:
            x = T.alloc_shared((64,), "float32")
            y = T.alloc_shared((64,), "float32")
            T.clear(y)
            for t in T.serial(N[0]):
                if t < 3:
                    T.copy(X[P[t], :], x)
                y[:] = y + x
            T.copy(y, Y)

    x, pages, count = RNG.random((9, 64), dtype=np.float32), np.array([5, 1, 8, 2], np.int32), np.array([6], np.int32)
    want = x[pages[:3]].sum(0) + 3 * x[pages[2]]
    assert np.allclose(tile_eg.compile(main, out_idx=[3])(x, pages, count), want, atol=1e-5)
