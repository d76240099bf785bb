"""A comparison follows the data's scale and the roundings that the kernel itself asks for, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.ir.index import ZERO
from tile_eg.ir.kernel import Alloc, Assign, Kernel, Region, Tensor, Unary
from tile_eg.ir.types import F16, F32, DType
from tile_eg.report.compare import TOLERANCE, compare, relative_error, tolerance


def kernel(buffer: DType, computed: bool) -> Kernel:
    """C = A or exp(A), by way of one buffer; A and C are f32."""
    a, c, x = (Region(n, (ZERO,), (8,)) for n in "ACx")
    body = (Alloc("x", "shared", buffer, (8,)), Assign(x, Unary("exp", a) if computed else a), Assign(c, x))
    return Kernel("k", (Tensor("A", F32, (8,), False), Tensor("C", F32, (8,), True)), (), body)


def test_a_small_error_in_a_small_number_counts_as_much_as_in_a_large_one() -> None:
    want = np.array([1e-4, 2e-4, 1e-4])
    assert relative_error(want * 1.5, want).max() == pytest.approx(0.5)


def test_cancellation_near_zero_is_judged_by_the_scale_of_the_rest() -> None:
    assert relative_error(np.array([100.0, 1e-4, 100.0]), np.array([100.0, 0.0, 100.0]))[1] == pytest.approx(1e-6)


@pytest.mark.parametrize(("got", "want"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (np.inf, -np.inf), (1.0, np.inf)])
def test_a_number_and_no_number_are_infinitely_far_apart(got: float, want: float) -> None:
    assert relative_error(np.array([got]), np.array([want]))[0] == np.inf


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_the_same_infinity_on_both_sides_is_no_error(value: float) -> None:
    assert relative_error(np.array([value]), np.array([value]))[0] == 0


def test_the_largest_error_is_found_with_its_place() -> None:
    want = {"C": np.ones(8, np.float32)}
    got = {"C": np.where(np.arange(8) == 5, 1.25, 1.0).astype(np.float32)}
    (result,) = compare(kernel(F32, True), got, want)
    assert (result.name, result.error, result.where, result.good) == ("C", 0.25, (5,), False)


def test_equal_arrays_are_good() -> None:
    x = {"C": np.linspace(-1, 1, 8, dtype=np.float32)}
    assert all(c.good for c in compare(kernel(F32, True), x, x))


@pytest.mark.parametrize(("buffer", "computed", "coarsest"), [(F32, True, "f32"), (F16, True, "f16"), (F16, False, "f32")])
def test_only_a_computed_value_in_a_coarse_buffer_widens_the_tolerance(buffer: DType, computed: bool, coarsest: str) -> None:
    k = kernel(buffer, computed)
    assert tolerance(k, k.tensors[1]) == TOLERANCE[coarsest]
