"""Flag ids of kernels that go through the same rows in several passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

NORM = Path(__file__).parents[2] / "examples" / "norms" / "group_norm.tile"


@pytest.mark.long
def test_what_is_loaded_outside_of_the_passes_takes_no_buffer_from_the_first_two() -> None:
    kernel = load_text(NORM.read_text(encoding="utf-8"), NORM.name).instantiate({"B": 8, "C": 320, "G": 32, "S": 4096})
    schedule = lower(kernel).chosen.schedule
    loads = [schedule.storages[s.dst].slots for s, around in schedule.walk() if around and s.node.op == "GmToUB"]
    assert loads[:2] == [2, 2]
