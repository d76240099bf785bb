"""A comparison judges every element by its own bound, and says what it could not judge."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.ir.reference_bounds import Expected
from tile_eg.report.compare import Comparison, absolute_error, compare


def compared(got: list[float], want: list[float], allowed: float | list[float]) -> Comparison:
    value = np.array(want, np.float32)
    bounds = np.broadcast_to(np.array(allowed, np.float32), value.shape)
    return compare({"C": np.array(got, np.float32)}, {"C": Expected(value, bounds)})[0]


def test_a_small_value_is_judged_by_its_own_bound_not_by_the_scale_of_the_rest() -> None:
    found = compared([100.0, 2e-6, 100.0], [100.0, 1e-6, 100.0], [1e-4, 1e-9, 1e-4])
    assert (found.where, found.wrong, found.good) == ((1,), 1, False)


def test_the_worst_is_the_one_that_is_farthest_for_what_is_allowed() -> None:
    found = compared([1.5, 1.2, 1.0], [1.0, 1.0, 1.0], [1.0, 0.1, 1.0])
    assert found.where == (1,)
    assert (found.error, found.allowed, found.want) == pytest.approx((0.2, 0.1, 1.0))


def test_equal_arrays_are_good_where_nothing_is_allowed() -> None:
    found = compared([0.0, -1.0], [0.0, -1.0], 0.0)
    assert (found.good, found.words) == (True, "no error")


def test_any_error_is_wrong_where_nothing_is_allowed() -> None:
    assert compared([1e-30], [0.0], 0.0).wrong == 1


@pytest.mark.parametrize(("got", "want"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (np.inf, -np.inf), (1.0, np.inf)])
def test_a_number_and_no_number_are_infinitely_far_apart(got: float, want: float) -> None:
    assert absolute_error(np.array([got]), np.array([want]))[0] == np.inf


def test_nan_in_the_place_of_a_number_is_wrong_and_said() -> None:
    found = compared([np.nan, 1.0], [2.0, 1.0], 1e3)
    assert not found.good
    assert "C[0] is nan, where 2 is meant" in found.words


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_the_same_infinity_on_both_sides_is_no_error(value: float) -> None:
    assert absolute_error(np.array([value]), np.array([value]))[0] == 0


def test_nan_on_both_sides_is_good_and_said() -> None:
    found = compared([np.nan, 1.0], [np.nan, 1.0], 0.0)
    assert found.good
    assert found.notes == ["1 of 2 elements is NaN, and should be"]


def test_an_element_without_a_bound_is_not_compared_and_that_is_said() -> None:
    found = compared([7.0, 1.0, 3.0], [2.0, 1.0, np.inf], [np.inf, 0.0, np.inf])
    assert found.good
    assert found.notes == ["2 of 3 elements are not compared: roundings alone decide over their values"]


def test_plain_values_have_null_for_what_json_cannot_say() -> None:
    data = compared([np.nan], [2.0], 1.0).data()
    assert (data["error"], data["got"], data["want"], data["where"]) == (None, None, 2.0, [0])
