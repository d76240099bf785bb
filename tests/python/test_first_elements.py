"""Parts whose length only the kernel knows, in words that compute: `T.vadd(a[:n, :], ...)`, `T.Parallel(n, 8)`, `size=[n, m]`."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
M, N = 70, 40
RNG = np.random.default_rng(0)
X, Y = (RNG.uniform(-1, 1, (M, N)).astype(np.float32) for _ in range(2))


def tails(cleared: bool):
    """exp(2 * a + b) and its sums over rows, in tiles of 32 x 32; cleared ones are done in order."""

    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32"),
        S: T.Tensor((M, 1), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, 32), is_npu=True) as (bx, _):
            a, b = T.alloc_shared((32, 32), "float32"), T.alloc_shared((32, 32), "float32")
            s, p = T.alloc_shared((32, 1), "float32"), T.alloc_shared((32, 1), "float32")
            n = T.min(32, M - bx * 32)
            T.clear(s)
            if cleared:
                T.clear(a)
            for j in T.serial(T.ceildiv(N, 32)):
                m = T.min(32, N - j * 32)
                T.copy(A[bx * 32 : bx * 32 + n, j * 32 : j * 32 + m], a[:n, :m])
                T.copy(B[bx * 32 : bx * 32 + n, j * 32 : j * 32 + m], b[:n, :m])
                T.vmul(a[:n, :m], 2.0, a[:n, :m])
                T.vadd(a[:n, :m], b[:n, :m], a[:n, :m])
                T.vexp(a[:n, :m], a[:n, :m])
                T.reduce_sum(a, p, dim=1, size=[n, m])
                T.vadd(s, p, s)
                T.copy(a[:n, :m], C[bx * 32 : bx * 32 + n, j * 32 : j * 32 + m])
            T.copy(s[:n, :], S[bx * 32 : bx * 32 + n, :])

    return main


@pytest.mark.slow
@pytest.mark.parametrize("cleared", [False, True])
def test_words_on_the_first_elements_of_buffers(cleared) -> None:
    c, s = tile_eg.compile(tails(cleared), out_idx=[2, 3], target="npuir")(X, Y)
    want = np.exp(2 * X + Y)
    np.testing.assert_allclose(c, want, rtol=1e-5)
    np.testing.assert_allclose(s[:, 0], want.sum(1), rtol=1e-5)


@pytest.mark.slow
def test_an_element_loop_as_long_as_the_kernel_finds_out() -> None:
    """The index is in a buffer that is written there first, so it is done in order."""

    @T.prim_func
    def main(I: T.Tensor((M,), "int32"), A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):  # noqa: E741
        with T.Kernel(T.ceildiv(M, 32)) as b:
            n = T.min(32, M - b * 32)
            at, c = T.alloc_shared((32,), "int32"), T.alloc_shared((32, N), "float32")
            for i in T.Parallel(n):
                at[i] = I[b * 32 + i]
            for i, j in T.Parallel(n, N):
                c[i, j] = A[at[i], j]
            T.copy(c[:n, :], C[b * 32 : b * 32 + n, :])

    rows = RNG.permutation(M).astype(np.int32)
    np.testing.assert_array_equal(tile_eg.compile(main, out_idx=[2])(rows, X), X[rows])


@pytest.mark.slow
def test_an_element_loop_as_long_as_an_element_says() -> None:
    @T.prim_func
    def main(L: T.Tensor((3,), "int32"), A: T.Tensor((3, 16, N), "float32"), C: T.Tensor((3, N), "float32")):
        with T.Kernel(3) as b:
            a, c, s = T.alloc_shared((16, N), "float32"), T.alloc_shared((16, N), "float32"), T.alloc_shared((N,), "float32")
            T.copy(A[b, 0, 0], a)
            T.fill(c, 1.0)
            for i, j in T.Parallel(T.min(16, L[b]), N):
                c[i, j] = a[i, j] * 2
            T.reduce_sum(c, s, dim=0)
            T.copy(s, C[b, 0])

    a, lengths = RNG.uniform(-1, 1, (3, 16, N)).astype(np.float32), np.array([0, 5, 16], np.int32)
    want = np.stack([2 * x[:n].sum(0) + 16 - n for x, n in zip(a, lengths, strict=True)])
    np.testing.assert_allclose(tile_eg.compile(main, out_idx=[2])(lengths, a), want, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_results_of_three_dimensions_may_keep_the_one_that_is_reduced() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8, N), "float32"), C: T.Tensor((4, 8, N), "float32")):
        with T.Kernel(1):
            a, m = T.alloc_shared((4, 8, N), "float32"), T.alloc_shared((4, 8, 1), "float32")
            s = T.alloc_shared((4, 1, N), "float32")
            T.copy(A, a)
            T.reduce_max(a, m, dim=2)
            for k, i, j in T.Parallel(4, 8, N):
                a[k, i, j] = T.exp(a[k, i, j] - m[k, i, 0])
            T.reduce_sum(a, s, dim=1)
            for k, i, j in T.Parallel(4, 8, N):
                a[k, i, j] = a[k, i, j] / s[k, 0, j]
            T.copy(a, C)

    a = RNG.uniform(-1, 1, (4, 8, N)).astype(np.float32)
    e = np.exp(a - a.max(2, keepdims=True))
    np.testing.assert_allclose(tile_eg.compile(main, out_idx=[1])(a), e / e.sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.slow
def test_bools_that_a_comparison_writes_are_conditions() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), V: T.Tensor((64,), "int32"), C: T.Tensor((16, 64), "float32")):
        with T.Kernel(1) as (b, _):
            a, v = T.alloc_shared((16, 64), "float32"), T.alloc_shared((64,), "int32")
            none, m = T.alloc_shared((64,), "int32"), T.alloc_shared((64,), "bool")
            T.copy(A, a)
            T.copy(V, v)
            T.vbrc(-1, none)
            T.vcmp(v, none, m, "ne")
            for i, j in T.Parallel(16, 64):
                a[i, j] = T.if_then_else(m[j], a[i, j], -1.0)
            T.copy(a, C)

    a, v = RNG.uniform(-1, 1, (16, 64)).astype(np.float32), RNG.integers(-1, 2, 64).astype(np.int32)
    np.testing.assert_array_equal(tile_eg.compile(main, out_idx=[2], target="npuir")(a, v), np.where(v != -1, a, -1))


def test_the_ends_of_an_element_loop_need_a_most() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 8), "float32"), C: T.Tensor((64, 8), "float32")):
        with T.Kernel(4) as b:
            for i, j in T.Parallel(b * 16, 8):
                C[i, j] = A[i, j]

    with pytest.raises(tile_eg.TileError, match="may be any number"):
        tile_eg.compile(main, out_idx=[1])(np.zeros((64, 8), np.float32))


def _blocks(first: str):
    """Rows of two blocks, of which the second one has two, in the order of statements: a branch goes by what is read."""

    @T.prim_func
    def main(
        L: T.Tensor((2,), "int32"), Q: T.Tensor((10, 16), "int32"), Y: T.Tensor((10, 16), "int32"), S: T.Tensor((2, 16), "int32")
    ):
        with T.Kernel(2) as b:
            n = T.min(8, 10 - b * 8)
            q = T.alloc_shared((8, 16), "int32")
            if first == "part":
                T.copy(Q[b * 8 : b * 8 + n, :], q[:n, :])
                for i, j in T.Parallel(n, 16):
                    q[i, j] = q[i, j] % 7
            else:
                T.copy(Q[b * 8 : b * 8 + n, :], q, pad_value=3)
            if L[b] > 0:
                T.copy(q[7, :], S[b, :])
            T.copy(q[:n, :], Y[b * 8 : b * 8 + n, :])

    return main


@pytest.mark.slow
@pytest.mark.parametrize(("first", "last"), [("part", 0), ("all", 3)])
def test_what_a_copy_leaves_of_a_buffer_is_zero_or_its_padding(first, last) -> None:
    """Element loops compute all rows, also those that no copy has written, and choose."""
    q = np.arange(-80, 80, dtype=np.int32).reshape(10, 16)
    y, s = tile_eg.compile(_blocks(first), out_idx=[2, 3])(np.ones(2, np.int32), q)
    np.testing.assert_array_equal(y, q % 7 if first == "part" else q)
    np.testing.assert_array_equal(s, [y[7], np.full(16, last)])
