"""Few blocks whose loops store: the search gives their trips to all cores."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tests.transforms.test_side_by_side import HEADS
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning

MOVE = "trips-in-blocks"
SIZES = {"S": 96, "H": 64, "D": 256, "BS": 32}


def lowered(*without: str) -> Lowered:
    return lower(kernel(HEADS, **SIZES), "910B2", search=search_options(without=without))


@pytest.mark.slow
def test_three_blocks_leave_no_core_without_work() -> None:
    low, arrays = lowered(), arrays_for(kernel(HEADS, **SIZES))
    assert low.form.moves[0].startswith(MOVE)
    got, want = low.run(arrays).outputs, meaning(kernel(HEADS, **SIZES), arrays)
    assert all(np.allclose(got[name], want[name], rtol=1e-6) for name in want)
    assert low.cost.microseconds < 0.9 * lowered(MOVE).cost.microseconds
