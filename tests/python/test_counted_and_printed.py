"""In order: single elements that are added where an index says, and texts with values that only run time knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
N, B = 37, 16


@tile_eg.jit(out_idx=[-1])
def histogram() -> Any:
    @T.prim_func
    def kernel(at: T.Tensor((N,), "int32"), weights: T.Tensor((N,), "float32"), H: T.Tensor((5,), "float32")):
        with T.Kernel(T.ceildiv(N, B)) as b:
            w = T.alloc_shared((B,), "float32")
            T.copy(weights[b * B], w)
            T.printf(f"block {b} of {N // B + 1}, 100%: {w[1]:.2f} {b * B:3d}\n")
            for i in T.serial(B):
                if b * B + i < N and at[b * B + i] >= 0:
                    T.atomic_add(H[at[b * B + i]], w[i])

    return kernel


@pytest.mark.slow
def test_elements_are_added_one_by_one_and_an_f_string_shows_values_of_run_time(capfd: pytest.CaptureFixture[str]) -> None:
    at, weights = np.arange(N, dtype=np.int32) % 6 - 1, np.arange(N, dtype=np.float32)
    wanted = np.zeros(5, np.float32)
    np.add.at(wanted, at[at >= 0], weights[at >= 0])
    assert np.array_equal(histogram()(at, weights), wanted)
    lines = capfd.readouterr().out.splitlines()
    assert lines == [f"block {b} of 3, 100%: {B * b + 1:.2f} {B * b:3d}" for b in range(3)]


@tile_eg.jit(out_idx=[-1])
def asserted() -> Any:
    @T.prim_func
    def kernel(X: T.Tensor((4, 16), "float32"), Y: T.Tensor((4, 16), "float32")):
        with T.Kernel(4) as b:
            x = T.alloc_shared((1, 16), "float32")
            T.copy(X[b, 0], x)
            T.device_assert(b < 2, f"block {b} of 100%")
            T.copy(x, Y[b, 0])

    return kernel


def test_an_assertion_says_its_values_of_run_time() -> None:
    with pytest.raises(TileError, match="block 2 of 100%: the assertion does not hold"):
        asserted()(np.ones((4, 16), np.float32))


@tile_eg.jit(out_idx=[-1])
def of_elements(kept: bool) -> Any:
    @T.prim_func
    def kernel(X: T.Tensor((100,), "float32"), n: T.Tensor((1,), "int32"), Y: T.Tensor((100,), "float32")):
        with T.Kernel(2) as b:
            x = T.alloc_ub((64,), "float32")
            T.copy(X[b * 64], x)
            T.device_assert(x[40] < 5, "too large")  # x[40] of the second block does not exist
            for i in range(2):
                assert x[i] > -5 and n[0] < 9, "too small"
            if kept:
                T.barrier_all()
            T.copy(x, Y[b * 64])

    return kernel


@pytest.mark.parametrize("kept", [False, True])
def test_an_assertion_may_be_about_elements(kept: bool) -> None:
    x, n = np.linspace(-1, 1, 100, dtype=np.float32), np.array([3], np.int32)
    kernel = of_elements(kept)
    np.testing.assert_array_equal(kernel(x, n), x)
    for at, value, message in ((40, 9, "too large"), (65, -6, "too small")):
        wrong = x.copy()
        wrong[at] = value
        with pytest.raises(TileError, match=message):
            kernel(wrong, n)
    with pytest.raises(TileError, match="too small"):
        kernel(x, n + 9)


@tile_eg.jit(out_idx=[-1])
def shown() -> Any:
    @T.prim_func
    def kernel(X: T.Tensor((4, 16), "float32"), Y: T.Tensor((4, 16), "float32")):
        with T.Kernel(1) as b:
            x = T.alloc_shared((4, 16), "float32")
            T.copy(X, x)
            T.print(b + 1, msg="100%")
            T.print(x[1, 2])
            T.print(x[1:3, :4], msg="part of")
            T.copy(x, Y)

    return kernel


def test_print_shows_numbers_and_the_rows_of_a_part(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    np.testing.assert_array_equal(shown()(x), x)
    number, element, name, *rows = capfd.readouterr().out.splitlines()
    assert (number, element, name) == ("100% 1", "18.000000", "part of x")
    assert [row.split(": ")[-1] for row in rows] == ["[16, 17, 18, 19]", "[32, 33, 34, 35]"]
