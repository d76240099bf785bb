"""Tiles whose sizes happen to leave them one column are tiles as at any other size."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.python.written import prim_func
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.kernel import Alloc, Kernel
from tile_eg.ir.reference_values import run_values
from tile_eg.search.compiler import meaning

N = 1


@tile_eg.jit(out_idx=[-1])
def row_softmax(M, N, BM=16):
    @T.prim_func
    def row_softmax(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BM)) as bx:
            x = T.alloc_shared((BM, N), "float32")
            total = T.alloc_fragment((BM, 1), "float32")
            T.copy(X[bx * BM, 0], x)
            for i, j in T.Parallel(BM, N):
                x[i, j] = T.exp(x[i, j])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(BM, N):
                x[i, j] = x[i, j] / total[i, 0]
            T.copy(x, Y[bx * BM, 0])

    return row_softmax


@tile_eg.jit(out_idx=[-1])
def product(M, N, K):
    @T.prim_func
    def product(A: T.Tensor((K, M), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_shared((K, M), "float16")
            b = T.alloc_shared(shape=(N, K), dtype="float16")
            c = T.alloc_fragment((M, N), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_A=True, transpose_B=True, init=True)
            T.copy(c, C)

    return product


def shapes(kernel: Kernel) -> dict[str, tuple[int, ...]]:
    return {s.name: s.shape for s in kernel.body if isinstance(s, Alloc)}


def test_a_tile_of_a_size_that_is_1_keeps_its_two_dimensions() -> None:
    assert shapes(row_softmax(7, 1).kernel)["x"] == (16, 1)


def test_a_buffer_that_is_written_as_n_by_1_is_a_vector() -> None:
    assert shapes(row_softmax(7, 1).kernel)["total"] == (16,)


def test_rows_of_one_column_are_reduced() -> None:
    x = np.linspace(-1, 1, 7, dtype=np.float32).reshape(7, 1)
    np.testing.assert_array_equal(meaning(row_softmax(7, 1).kernel, {"X": x})["Y"], np.ones((7, 1), np.float32))


@pytest.mark.parametrize("sizes", [(1, 5, 7), (5, 1, 7), (5, 7, 1)])
def test_a_product_with_one_row_column_or_step_is_a_product(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b = np.ones((k, m), np.float16), np.ones((n, k), np.float16)
    np.testing.assert_array_equal(meaning(product(m, n, k).kernel, {"A": a, "B": b})["C"], np.full((m, n), k, np.float32))


def test_a_tensor_of_one_column_is_loaded_into_a_tile_of_one_in_the_order_of_the_statements() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def greatest(X: T.Tensor((7, N), "float32"), Y: T.Tensor((7,), "float32")):
        with T.Kernel(2) as b:
            x, m = T.alloc_shared((4, N), "float32"), T.alloc_shared((4,), "float32")
            T.copy(X[b * 4 : b * 4 + 4, :], x)
            T.printf("")
            T.reduce_max(x, m, dim=1)
            T.copy(m, Y[b * 4])

    x = np.random.default_rng(0).random((7, N), np.float32)
    np.testing.assert_array_equal(greatest(x), x[:, 0])


def test_the_only_column_is_0_for_every_variable_of_a_loop_over_it() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def doubled(X: T.Tensor((7, 1), "float32"), Y: T.Tensor((7, 1), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((7, 1), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(7, 1):
                x[i, j] = 2 * x[i, j] + j
            T.copy(x, Y)

    x = np.arange(7, dtype=np.float32).reshape(7, 1)
    np.testing.assert_array_equal(meaning(doubled.kernel, {"X": x})["Y"], 2 * x)


FORMS = [
    "T.copy(v, x[:, 0])", "x[:, 0] = v * 2", "for i in T.Parallel(8): x[i, 0] = v[i] + 1",
    "T.copy(x[:, 0], v)", "v[:] = x[:, 0] * 2",
]  # fmt: skip


@pytest.mark.parametrize("N", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_a_column_is_a_vector_whether_or_not_it_is_the_only_one(form: str, N: int) -> None:
    text = f"""
N = {N}
vector, tile = T.Tensor((8,), "float32"), T.Tensor((8, N), "float32")
def f(V: vector, X: tile, Y: tile, U: vector):
    with T.Kernel(1) as _:
        v, x = T.alloc_shared((8,), "float32"), T.alloc_shared((8, N), "float32")
        T.copy(V, v)
        T.copy(X, x)
        {form}
        T.copy(x, Y)
        T.copy(v, U)
"""
    rng = np.random.default_rng(0)
    arrays = {"V": rng.random(8, np.float32), "X": rng.random((8, N), np.float32)}
    kernel = tile_eg.jit(out_idx=[-2, -1])(T.prim_func(prim_func(text))).kernel
    wanted, got = meaning(kernel, arrays), run_values(to_values(kernel), arrays)
    assert (got["Y"] != arrays["X"]).any() or (got["U"] != arrays["V"]).any()
    for name in ("Y", "U"):
        np.testing.assert_array_equal(np.reshape(got[name], wanted[name].shape), wanted[name])


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_with_a_column_adds_up_in_it(turned: bool) -> None:
    n, k = 50, 75
    shape = (k, n) if turned else (n, k)

    @tile_eg.jit(out_idx=[-1], effort="none")
    @T.prim_func
    def product(A: T.Tensor(shape, "float16"), v: T.Tensor((k,), "float16"), y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 16)) as b:
            a = T.alloc_shared((32, 16) if turned else (16, 32), "float16")
            x, c = T.alloc_shared((32, 1), "float16"), T.alloc_fragment((16, 1), "float32")
            for i in T.serial(T.ceildiv(k, 32)):
                T.copy(v[i * 32 : (i + 1) * 32], x[:, 0])
                T.copy(A[i * 32, b * 16] if turned else A[b * 16, i * 32], a)
                T.gemm(a, x, c, transpose_A=turned, clear_accum=(i == 0))
            T.copy(c[:, 0], y[b * 16 : (b + 1) * 16])

    rng = np.random.default_rng(0)
    a, v = (rng.integers(-4, 5, s).astype(np.float16) for s in (shape, (k,)))
    np.testing.assert_array_equal(product(a, v), (a.T if turned else a).astype(np.float32) @ v.astype(np.float32))
