"""Random kernels give the same numbers as the search schedules them and in the order of their statements."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.fuzz.two_ways import IN_ORDER, drawn
from tests.python.written import prim_func
from tile_eg.errors import TileError

pytestmark = pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
AUTO = dict.fromkeys((tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC, tile_eg.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC), True)
LIMITS = ("change from trip to trip", "that do not lie in one run", "is not followed so far", "it is loaded behind this")
"""What a kernel may be refused for, by the search or by the note that it cannot be done in order either."""


def results(text: str, inputs: list[np.ndarray]) -> list[np.ndarray] | None:
    """What a kernel stores; None where it is refused for a limit."""
    try:
        return tile_eg.jit(out_idx=[5, 6], pass_configs=AUTO, effort="none")(prim_func(text))(*(a.copy() for a in inputs))
    except TileError as e:
        if not any(limit in e.render() for limit in LIMITS):
            raise
        return None


def agrees(seed: int) -> bool:
    """Whether there are numbers both ways; then they are the same, but for the rounding of their sums."""
    program = drawn(seed)
    inputs = program.inputs(seed)
    searched, in_order = results(program.text(), inputs), results(program.text(IN_ORDER), inputs)
    if searched is None or in_order is None:
        return False
    for a, b in zip(searched, in_order, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg="\n".join(program.lines))
    return True


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("seed", range(8))
def test_a_schedule_gives_what_the_statements_give_in_their_order(seed: int) -> None:
    assert agrees(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_many_schedules_give_what_the_statements_give_in_their_order(first: int) -> None:
    assert sum(agrees(seed) for seed in range(first, first + 50)) > 25
