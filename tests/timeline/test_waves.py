"""Blocks beyond the cores: a core takes the next block when it has ended one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.validate.rows import rows
from tile_eg.chips.loader import ends as ends_of
from tile_eg.timeline.engine import run
from tile_eg.timeline.summary import interval
from tile_eg.timeline.waves import ended, in_waves, spread

HALF = 0.5


def test_blocks_of_one_length_come_in_waves() -> None:
    assert in_waves(100, 24, (10.0, 10.0, 10.0), HALF) == 50.0


def test_the_last_wave_may_be_quicker() -> None:
    assert in_waves(50, 24, (10.0, 10.0, 7.0), HALF) == 27.0


def test_whoever_ends_early_takes_what_is_left() -> None:
    assert in_waves(25, 24, (100.0, 10.0, 10.0), HALF) == 100.0


def test_cores_that_began_together_do_not_all_lose_as_much_as_the_last() -> None:
    ends = spread(20.0, 10.0, 4, HALF)
    assert ends == sorted(ends) and ends[0] > 10.0 and ends[-1] == 20.0


@given(st.integers(2, 200), st.integers(1, 24), st.floats(1, 50), st.floats(1, 50))
def test_rounds_that_are_not_gone_through_change_nothing(blocks: int, cores: int, first: float, later: float) -> None:
    cores = min(cores, blocks - 1)
    each = ended(spread(first, min(first, later), cores, HALF), [later] * (blocks - cores))
    assert in_waves(blocks, cores, (first, later, later), HALF) == pytest.approx(each)


@pytest.mark.slow
@given(st.integers(2, 200), st.integers(1, 24), st.floats(1, 50), st.floats(1, 50))
def test_it_takes_no_less_than_all_work_shared_out(blocks: int, cores: int, first: float, later: float) -> None:
    cores = min(cores, blocks - 1)
    work = sum(spread(first, min(first, later), cores, HALF)) + (blocks - cores) * later
    assert in_waves(blocks, cores, (first, later, later), HALF) >= work / cores * (1 - 1e-9)


@pytest.mark.slow
def test_what_the_first_core_loses_is_in_the_interval() -> None:
    """32 blocks on 24 cores: the first may lose nothing, or all of what the last loses by reading what the others read."""
    row = next(r for r in rows() if r.name == "PTO 4096")
    both = ends_of(row.machine)
    assert both is not None
    assert [chip.shared.first_lost for chip in both] == [0, 1]
    half = [replace(chip, shared=replace(chip.shared, first_lost=HALF)) for chip in both]
    low, high = interval(row.program, row.machine)
    assert low < 0.97 * run(row.program, half[0], record=False).microseconds
    assert high > 1.03 * run(row.program, half[1], record=False).microseconds
