"""Clocks in one number each do what lists of counters do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_eg.emit.sync.clock import BITS, MOST, count, guards, merged

SIZE = 7
counters = st.lists(st.one_of(st.integers(0, 5), st.integers(0, MOST)), min_size=SIZE, max_size=SIZE)


def clock(counters: list[int]) -> int:
    return sum(n << BITS * at for at, n in enumerate(counters))


@pytest.mark.slow
@given(counters)
def test_a_clock_keeps_every_counter(one: list[int]) -> None:
    assert [count(clock(one), at) for at in range(SIZE)] == one


@pytest.mark.slow
@given(counters, counters)
def test_merging_takes_the_greater_of_each_pair(one: list[int], other: list[int]) -> None:
    assert merged(clock(one), clock(other), guards(SIZE)) == clock(list(map(max, one, other)))
