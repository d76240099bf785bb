"""Items in this process and in several: outcomes in order, failures named, nothing lost where one dies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.spread import work
from tile_eg.errors import TileError
from tile_eg.spread import TRIES, crew, spread

pytestmark = pytest.mark.slow(but=2)


@pytest.mark.parametrize("workers", [1, 2])
def test_values_come_in_the_order_of_their_items(workers: int) -> None:
    assert [o.value for o in spread(work.doubled, range(5), workers=workers)] == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_fails_is_named_and_stops_nothing_else(workers: int) -> None:
    found = spread(work.refused, range(4), workers=workers)
    assert [o.value for o in found] == [0, None, None, 3]
    assert found[1].error == "error: 1 is not liked" and not found[1].fault
    assert found[2].error == "KeyError: 'two'" and found[2].fault


def test_each_process_is_another_one() -> None:
    with crew(workers=2) as them:
        pids = {o.value for o in them.each(work.process, range(6))}
        assert os.getpid() not in pids and len(pids) <= 2
        assert {o.value for o in them.each(work.process, range(6))} <= pids


def test_what_a_killed_process_had_is_done_again(tmp_path: Path) -> None:
    told: list[str] = []
    items = [(str(tmp_path), n) for n in range(6)]
    found = spread(work.sometimes_dies, items, workers=2, tell=told.append)
    assert [o.value for o in found] == [0, 2, 4, 6, 8, 10]
    assert told == [f"note: process {(tmp_path / 'died').read_text()} died; what it had is done again"]


def test_an_item_at_which_every_process_dies_is_left() -> None:
    found = spread(work.dies, [0, 0], workers=2)
    assert all(o.fault and f"{TRIES} workers died at it" in o.error for o in found)


def test_a_value_that_cannot_be_sent_is_its_items_fault() -> None:
    assert "its value cannot be sent" in spread(work.unsendable, [1, 2], workers=2)[0].error


def test_an_item_that_cannot_be_sent_is_named() -> None:
    found = spread(work.process, [lambda: 0, 1], workers=2)
    assert "it cannot be sent" in found[0].error and found[1].value


def test_nobody_does_no_work() -> None:
    with pytest.raises(TileError, match="0 workers: at least one"):
        crew(workers=0)
    with pytest.raises(TileError, match="not both"):
        crew(workers=2, dask="tcp://127.0.0.1:1")


def test_progress_is_told_of_each() -> None:
    seen: list[tuple[int, int]] = []
    spread(work.doubled, range(3), progress=lambda o, n: seen.append((o.item, n)))
    assert seen == [(0, 1), (1, 2), (2, 3)]
