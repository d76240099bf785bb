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


@pytest.mark.slow
def test_a_branch_a_bound_and_a_store_that_go_by_what_is_read() -> None:
    """Pages that are there: elements behind a length are -1, the first rows are stored; a number is cleared by its word."""

    @tile_eg.jit(out_idx=[-2, -1])
    @T.prim_func
    def main(
        X: T.Tensor((64, 16), "float32"), At: T.Tensor((2, 3), "int32"), L: T.Tensor((2,), "int32"),
        W: T.Tensor((16, 16), "float32"), Y: T.Tensor((2, 4, 16), "float32"), Z: T.Tensor((2,), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as b:
            x, y = T.alloc_shared((8, 16), "float32"), T.alloc_fragment((8, 16), "float32")
            n = T.alloc_var("float32")
            T.clear(y)
            T.clear(n)
            for k in T.serial(3):
                at = At[b, k]
                if at >= 0:
                    T.copy(X[at * 8, 0], x)
                    n += 1
                    for i, j in T.Parallel(8, 16):
                        y[i, j] += T.if_then_else(at * 8 + i >= L[b], -1.0, x[i, j])
            for i, j in T.Parallel(8, 16):
                if i < 4:
                    Y[b, i, j] = y[i, j]
                if i < L[b] - 40:
                    W[b * 8 + i, j] = y[i, j]
            Z[b] = n

    x = RNG.random((64, 16)).astype(np.float32)
    at, length = np.array([[0, -1, 5], [2, 7, 1]], np.int32), np.array([41, 58], np.int32)
    masked = [np.where(np.arange(64)[:, None] < n, x, -1).reshape(8, 8, 16) for n in length]
    w = np.zeros((16, 16), np.float32)
    y, z = main(x, at, length, w)
    sums = [m[a[a >= 0]].sum(0) for m, a in zip(masked, at, strict=True)]
    np.testing.assert_allclose(y, [s[:4] for s in sums], rtol=1e-5)
    np.testing.assert_allclose(w[:1], sums[0][:1], rtol=1e-5)
    np.testing.assert_allclose(w[8:], sums[1], rtol=1e-5)
    assert not w[1:8].any()
    np.testing.assert_array_equal(z, (at >= 0).sum(1))


def guarded(twice: bool):
    @tile_eg.jit(effort="none")
    @T.prim_func
    def made(X: T.Tensor((32, 64), "float32"), N: T.Tensor((1,), "int32"), Y: T.Tensor((32, 64), "float32")):
        with T.Kernel(2) as b:
            x = T.alloc_shared((16, 64), "float32")
            T.copy(X[b * 16, 0], x)
            for i, j in T.Parallel(16, 64):
                if twice and j < N[0]:
                    Y[b * 16 + i, j] = x[i, j]
                if j < N[0] and i > 2 and i >= 2:
                    Y[b * 16 + i, j] = x[i, j] * 2 + i

    return made


@pytest.mark.slow
@pytest.mark.parametrize("twice", [False, True])
def test_a_store_to_elements_from_a_number_on_and_below_one_that_is_read(twice: bool) -> None:
    x, i, j = RNG.normal(size=(32, 64)).astype(np.float32), np.arange(32)[:, None] % 16, np.arange(64)
    for n in (20, 64, 0):
        y = np.full((32, 64), 9, np.float32)
        guarded(twice)(x, np.array([n], np.int32), y)
        before = np.where(j < n, x, 9) if twice else 9
        np.testing.assert_array_equal(y, np.where((j < n) & (i > 2), x * 2 + i.astype(np.float32), before))
