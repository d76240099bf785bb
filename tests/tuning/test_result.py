"""The table of what tuning found."""

from __future__ import annotations

import pytest

from tests.tuning.conftest import KERNEL
from tile_eg.frontend.text import load_text
from tile_eg.report.decisions import UNDECIDED
from tile_eg.search.tuned_file import NPU, TIMELINE, path_of
from tile_eg.tuning import Tuning
from tile_eg.tuning.journal import Record


def two_tried(by: str) -> str:
    found = Tuning(load_text(KERNEL).instantiate({}), "910B2", by, path_of("k"), "", 4, 8)
    found.records += [
        Record("a", (), "", 3.0, 3.0, interval=(2.5, 4.5), on_cores=(2.9, 3.2)),
        Record("b", (), "", 3.1, 3.1, interval=(2.6, 4.6), on_cores=(3.0, 3.3)),
    ]
    return str(found)


def test_every_time_has_its_interval() -> None:
    assert "2.5 to 4.5 us" in two_tried(TIMELINE) and "2.6 to 4.6 us" in two_tried(TIMELINE)


@pytest.mark.parametrize(("by", "marked"), [(TIMELINE, True), (NPU, False)])
def test_what_lies_in_the_interval_of_a_predicted_best_is_open(by: str, marked: bool) -> None:
    assert (UNDECIDED in two_tried(by)) == marked
