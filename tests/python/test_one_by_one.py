"""Rows and elements that follow one another, at places that are read: in the order of statements where the search has no form."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = [pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning"), pytest.mark.slow(but=3)]
RNG = np.random.default_rng(0)


@tile_eg.jit(out_idx=[-1])
def histogram(N, BINS, block, dtype):
    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((BINS,), dtype)):
        with T.Kernel(1) as _:
            x = T.alloc_shared((block,), "int32")
            h = T.alloc_shared((BINS,), dtype)
            T.clear(h)
            for k in T.serial(T.ceildiv(N, block)):
                T.copy(X[k * block], x)
                for i in T.serial(block):
                    if k * block + i < N:
                        h[x[i]] += 1
            T.copy(h, H)

    return main


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_what_a_branch_leaves_out_is_no_index(dtype: str) -> None:
    """The last tile has less than a block of elements; behind them the tensor has ended."""
    x = RNG.integers(0, 32, 150).astype(np.int32)
    assert np.array_equal(histogram(150, 32, 64, dtype)(x), np.bincount(x, minlength=32).astype(dtype))


@pytest.mark.slow
def test_elements_are_put_where_an_index_says() -> None:
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), P: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((64,), "float32")
            p = T.alloc_shared((64,), "int32")
            y = T.alloc_shared((64,), "float32")
            T.copy(X, x)
            T.copy(P, p)
            for i in T.serial(64):
                y[p[i]] = x[i]
            T.copy(y, Y)

    x, p, want = RNG.random(64, dtype=np.float32), RNG.permutation(64).astype(np.int32), np.empty(64, np.float32)
    want[p] = x
    assert np.array_equal(tile_eg.compile(main, out_idx=[2])(x, p), want)


def test_rows_are_gathered_by_an_index_that_is_computed() -> None:
    @T.prim_func
    def main(S: T.Tensor((16, 40), "float32"), V: T.Tensor((40, 32), "float32"), Y: T.Tensor((16, 32), "float32")):
        with T.Kernel(2) as b:
            s = T.alloc_shared((8, 40), "float32")
            at = T.alloc_shared((8,), "int32")
            v = T.alloc_shared((8, 32), "float32")
            T.copy(S[b * 8, 0], s)
            T.argmax(s, at, dim=1)
            for i in T.serial(8):
                T.copy(V[at[i], :], v[i, :])
            T.copy(v, Y[b * 8, 0])

    s, v = RNG.random((16, 40), dtype=np.float32), RNG.random((40, 32), dtype=np.float32)
    assert np.array_equal(tile_eg.compile(main, out_idx=[2])(s, v), v[s.argmax(1)])


def test_an_index_may_be_read_at_an_index_that_is_read() -> None:
    @T.prim_func
    def main(P: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
        with T.Kernel(1) as _:
            p = T.alloc_shared((64,), "int32")
            y = T.alloc_shared((64,), "int32")
            T.copy(P, p)
            for i in T.serial(64):
                y[i] = p[p[p[i]]] * 2 + p[i]
            T.copy(y, Y)

    p = RNG.permutation(64).astype(np.int32)
    assert np.array_equal(tile_eg.compile(main, out_idx=[1])(p), p[p[p]] * 2 + p)


@tile_eg.jit(out_idx=[-1])
def offsets(N, dtype):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(1) as _:
            x = T.alloc_shared((N,), dtype)
            y = T.alloc_shared((N,), dtype)
            T.copy(X, x)
            y[0] = 0
            for i in T.serial(1, N):
                y[i] = y[i - 1] + x[i - 1]
            T.copy(y, Y)

    return main


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_one_element_is_the_first_that_is_written(dtype: str) -> None:
    x = RNG.integers(0, 9, 32).astype(dtype)
    assert np.array_equal(offsets(32, dtype)(x), np.cumsum(x) - x)


def test_an_element_loop_still_reads_only_what_was_written() -> None:
    @T.prim_func
    def main(X: T.Tensor((32,), "float32"), Y: T.Tensor((32,), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((32,), "float32")
            y = T.alloc_shared((32,), "float32")
            T.copy(X, x)
            for i in T.Parallel(32):
                y[i] = T.if_then_else(x[i] > 0, x[i], y[i])
            T.copy(y, Y)

    with pytest.raises(tile_eg.TileError, match="`y` is read before it is written"):
        tile_eg.compile(main, out_idx=[1]).get_kernel_source()


def test_a_result_is_cleared_before_products_that_a_mask_may_leave_out() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 32), "float16"), Mask: T.Tensor((4, 2), "int32"),
        C: T.Tensor((64, 32), "float16"),
    ):  # fmt: skip
        with T.Kernel(4, threads=128) as bx:
            a = T.alloc_shared((16, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((16, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                if Mask[bx, k] != 0:
                    T.copy(A[bx * 16, k * 32], a)
                    T.copy(B[k * 32, 0], b)
                    T.gemm(a, b, c)
            T.copy(c, C[bx * 16, 0])

    a, b = (RNG.uniform(-1, 1, shape).astype(np.float16) for shape in ((64, 64), (64, 32)))
    mask = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32)
    want = (a * np.kron(mask, np.ones((16, 32)))).astype(np.float32) @ b.astype(np.float32)
    assert np.allclose(tile_eg.compile(main, out_idx=[3])(a, b, mask), want, atol=1e-2)
