"""Public measurements: what `make validate` prints stays within its limits, and a part of the rows was never fitted."""

from __future__ import annotations

from statistics import mean

import pytest

from benchmarks.validate.__main__ import LIMITS, ORDER
from benchmarks.validate.rows import Row, pairs, rows

pytestmark = pytest.mark.slow


def held_out(family: str) -> list[Row]:
    return [r for r in rows() if r.family == family and r.used == "held out"]


@pytest.mark.parametrize("family", LIMITS)
def test_rows_that_no_constant_was_fitted_on_come_out_within_the_limit(family: str) -> None:
    assert mean(abs(r.error) for r in held_out(family)) <= LIMITS[family]


@pytest.mark.parametrize("family", LIMITS)
def test_a_part_of_each_family_is_held_out(family: str) -> None:
    assert len(held_out(family)) >= 0.4 * len([r for r in rows() if r.family == family])


def test_what_its_author_made_quicker_is_predicted_quicker() -> None:
    assert mean(before.predicted > after.predicted for before, after in pairs()) >= ORDER


def test_every_row_names_its_public_source() -> None:
    assert all(":" in r.source and r.schedule for r in rows())
