"""Block sizes that are tried: what a chip says of them."""

from __future__ import annotations

import pytest

from tile_eg.chips import load_chip
from tile_eg.ops.types import F32, Level
from tile_eg.sizing.candidates import LONG, staying


@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_tiles_of_rows_that_stay_are_as_long_as_two_of_them_fit(chip: str) -> None:
    sizes, room = staying(load_chip(chip)), load_chip(chip).level_bytes(Level.UB)
    assert sizes[0] == LONG[0]
    assert 2 * F32.bytes * sizes[-1] <= room < 2 * F32.bytes * 2 * sizes[-1]
