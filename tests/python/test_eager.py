"""Functions that launch blocks themselves: called with arrays and numbers at once, as TileLang's newest kernels are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.jit import CompiledKernel
from tile_eg.jit.any_size import AnySizeKernel

X = np.arange(64, dtype=np.float32).reshape(4, 16)


@tile_eg.jit
def scaled(A, rows, factor=2.0, twice=False, dtype=T.float32):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], dtype]
    B = T.empty((M, N), dtype)
    if twice:
        with T.Kernel(M // rows) as b:
            a = T.alloc_shared((rows, N), dtype)
            T.copy(A[b * rows, 0], a)
            a[:, :] = a * factor * factor
            T.copy(a, B[b * rows, 0])
    else:
        with T.Kernel(M // rows) as b:
            a = T.alloc_shared((rows, N), dtype)
            T.copy(A[b * rows, 0], a)
            a[:, :] = a * factor
            T.copy(a, B[b * rows, 0])
    return B


@tile_eg.jit
def added(A, B, rows: int = 2):
    N = T.const("N")
    M = T.dynamic("M")
    A: T.Tensor((M, N), "float32")
    B: T.Tensor((M, N), "float32")
    with T.Kernel(T.ceildiv(M, rows)) as b:
        a = T.alloc_shared((rows, N), "float32")
        T.copy(A[b * rows, 0], a)
        a[:, :] = a + 1.0
        T.copy(a, B[b * rows, 0])


@pytest.mark.slow
def test_a_call_compiles_for_the_shapes_of_its_arrays_and_gives_what_is_returned() -> None:
    np.testing.assert_array_equal(scaled(X, 2), X * 2)


def test_arrays_that_tell_a_size_in_two_ways_are_refused() -> None:
    with pytest.raises(TileError, match="N is 16 in A and 15 in B"):
        added(X, X[:, :15].copy())


@pytest.mark.slow
def test_a_branch_by_a_number_decides_which_launch_is_the_kernel() -> None:
    np.testing.assert_array_equal(scaled(X, 2, factor=3.0, twice=True), X * 9)


@pytest.mark.slow
def test_compile_takes_sizes_by_name() -> None:
    kernel = scaled.compile(M=4, N=16, rows=2)
    assert isinstance(kernel, CompiledKernel)
    np.testing.assert_array_equal(kernel(X), X * 2)


def test_compile_takes_the_arrays_that_tell_the_sizes() -> None:
    assert scaled.compile(X, rows=2) is scaled.compile(X, rows=2)


@pytest.mark.slow
def test_dynamic_sizes_are_those_of_each_call_and_what_is_passed_in_is_filled() -> None:
    kernel, found = added.compile(N=16), np.zeros_like(X[:3])
    assert isinstance(kernel, AnySizeKernel)
    assert kernel(X[:3], found) is None
    np.testing.assert_array_equal(found, X[:3] + 1)


def test_calls_at_other_dynamic_sizes_have_one_kernel() -> None:
    for rows in (2, 3):
        added(X[:rows], np.zeros_like(X[:rows]))
    assert len({id(k) for k in added.kernels.values() if k.open == ["M"]}) == 1


def test_several_kernels_are_compiled_from_configurations() -> None:
    made = scaled.par_compile([{"M": 4, "N": 16, "rows": 2}, {"M": 4, "N": 16}], ignore_error=True)
    assert [type(k) for k in made] == [CompiledKernel, type(None)]


def test_the_best_configuration_is_called_with_the_arrays() -> None:
    tuned = tile_eg.autotune(configs=[{"rows": 2}, {"rows": 4}])(scaled)
    np.testing.assert_array_equal(tuned(X), X * 2)
    assert tuned.compile(X).config in ({"rows": 2}, {"rows": 4})


@pytest.mark.parametrize(
    ("call", "message", "help"),
    [
        (lambda: scaled.compile(M=4, N=16), "scaled: missing a required argument: 'rows'", "scaled(A, rows"),
        (lambda: scaled.compile(M=4, K=16, rows=2), "scaled has no parameter or size 'K'", "A, M, N"),
        (lambda: scaled(rows=2), "scaled is called without A", "compile"),
        (lambda: T.const("M"), "T.const has no meaning here", "before the launch"),
        (lambda: tile_eg.jit(out_idx=[-1])(scaled.function), "scaled launches blocks itself, and has no out_idx", "T.empty"),
    ],
    ids=["a number is missing", "another size", "no array", "outside", "out_idx"],
)
def test_a_mistake_in_a_call_is_told(call: Any, message: str, help: str) -> None:
    with pytest.raises(TileError) as caught:
        call()
    assert message in caught.value.message and help in caught.value.help


@tile_eg.jit
def gives_its_argument(A):
    A: T.Tensor((4, 16), "float32")
    with T.Kernel(1) as b:
        T.copy(A[b, 0], A[b, 0])
    return A


@tile_eg.jit
def of_its_module(A):
    A: T.Tensor([ROWS, 16], "float32")
    B = T.empty([ROWS, 16], "float32")
    with T.Kernel(1) as b:
        T.copy(A[b * ROWS : b * ROWS + ROWS, :], B[b * ROWS : b * ROWS + ROWS, :])
    return B


ROWS = 4


def test_names_of_the_module_are_those_at_the_call() -> None:
    np.testing.assert_array_equal(of_its_module.compile()(X), X)


@tile_eg.jit
def all_tiles(A, at_once):
    A: T.Tensor((4, 16), "float32")
    B = T.empty((4, 16), "float32")
    with T.Kernel(2) as b:
        a = T.alloc_shared((1, 16), "float32")
        if at_once:
            for i, j in T.Persistent([4, 1], 2, b):
                T.copy(A[i, j], a)
                T.copy(a, B[i, j])
        else:
            for i in T.serial(2):
                T.copy(A[i * 2 + b, 0], a)
                T.copy(a, B[i * 2 + b, 0])
    return B


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [True, False])
def test_a_loop_over_all_tiles_may_end_a_branch(at_once: bool) -> None:
    np.testing.assert_array_equal(all_tiles(X, at_once), X)


@tile_eg.jit
def goes_on(A):
    A: T.Tensor((4, 16), "float32")
    B = T.empty((4, 16), "float32")
    with T.Kernel(1):
        T.copy(A[:, :], B[:, :])
    C = B
    del C
    return B


def test_what_stands_behind_the_last_launch_is_refused() -> None:
    with pytest.raises(TileError, match="nothing stands behind the last launch") as caught:
        goes_on(X)
    assert caught.value.span is not None and "in a launch of its own" in caught.value.help


def test_only_a_tensor_that_the_call_makes_is_given_back() -> None:
    with pytest.raises(TileError, match=r"what is returned is no tensor of T\.empty"):
        gives_its_argument(X)


def test_a_mistake_in_the_body_is_told_at_its_line() -> None:
    with pytest.raises(TileError, match="rows") as caught:
        wrong(X)
    assert caught.value.span is not None
    assert caught.value.source.splitlines()[caught.value.span.line - 1].strip().startswith("T.copy(A[")


@tile_eg.jit
def wrong(A):
    A: T.Tensor((4, 16), "float32")
    B = T.empty((4, 16), "float32")
    with T.Kernel(1) as b:
        a = T.alloc_shared((4, 16), "float32")
        T.copy(A[b * rows, 0], a)  # noqa: F821
        T.copy(a, B[b, 0])
    return B


@tile_eg.jit
def with_a_pointer(A, n=3):
    A: T.Tensor((4, 16), "float32")
    p = T.ptr(n)
    with T.Kernel(1):
        T.copy(A[:, :], p[:, :])


def test_a_word_that_is_not_there_is_told_before_a_launch_as_in_it() -> None:
    with pytest.raises(TileError, match="T has no word ptr") as caught:
        with_a_pointer(X)
    assert caught.value.span is not None and "a kernel has no pointers" in caught.value.help


def test_a_size_that_is_0_is_told_once() -> None:
    with pytest.raises(TileError) as error:
        scaled(np.zeros((0, 8), np.float32), 2)
    assert error.value.message == "M is 0, and a size of T.const is at least 1" and not error.value.others
