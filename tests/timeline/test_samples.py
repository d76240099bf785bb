"""Of many blocks and trips a sample stands for all: nothing that is asked of them grows with their number."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.timeline.arrays import LEAST_SAMPLE, MOST_POINTS, sample


def test_few_numbers_are_all_there() -> None:
    numbers, stand_for = sample(1000)
    assert numbers.tolist() == list(range(1000))
    assert set(stand_for.tolist()) == {1}


@pytest.mark.parametrize("beside", [1, 24, 10**9])
def test_a_sample_stands_for_all_and_its_last_number_for_itself(beside: int) -> None:
    numbers, stand_for = sample(10**9, beside)
    assert len(numbers) <= max(LEAST_SAMPLE, MOST_POINTS // beside)
    assert (numbers[0], numbers[-1], stand_for[-1]) == (0, 10**9 - 1, 1)
    assert stand_for.sum() == pytest.approx(10**9)


def test_what_changes_evenly_has_the_mean_that_it_has_over_all() -> None:
    numbers, stand_for = sample(10**9)
    assert np.average(numbers % 7, weights=stand_for) == pytest.approx(3, rel=1e-3)
    assert ((numbers < 10**9 - 1) * stand_for).sum() == pytest.approx(10**9 - 1, rel=1e-12)
