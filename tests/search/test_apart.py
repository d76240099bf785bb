"""Places apart: buffers give up slots where tiles would wait for places that they share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.extract.kernels import kernel
from tile_eg.emit.sync.check import races
from tile_eg.extract.apart import apart, shares_places
from tile_eg.extract.memory import ON_CHIP
from tile_eg.extract.schedule import Schedule
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower

ATTENTION = (Path(__file__).parents[2] / "examples" / "flash_attention.tile").read_text("utf-8")
SIZES = {"H": 16, "S": 1024, "D": 128, "BM": 128, "BN": 128}
pytestmark = pytest.mark.slow


@cache
def found(*without: str) -> Lowered:
    return lower(kernel(ATTENTION, **SIZES), "910B2", search=search_options(without=("blocks-together", *without)))


def test_a_place_for_each_tile_may_be_worth_more_than_a_slot() -> None:
    best, other = found().ranked[0], found("places-apart").ranked[0]
    assert shares_places(other.schedule) and not shares_places(best.schedule)
    assert best.microseconds < 0.99 * other.microseconds


def test_the_schedule_that_it_is_made_of_stays_as_it_is() -> None:
    schedule = found("places-apart").ranked[0].schedule
    slots = [s.slots for s in schedule.storages.values()]
    made = apart(schedule, found().chip)
    assert made is not None and made.shrunk > schedule.shrunk
    assert [s.slots for s in schedule.storages.values()] == slots and apart(made, found().chip) is None


def test_where_the_fewest_slots_do_not_help_no_others_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    schedule = found("places-apart").ranked[0].schedule

    def assigned(made: Schedule, chip: object) -> None:
        made.crowded = schedule.crowded
        tried.append(made.shrunk)

    monkeypatch.setattr("tile_eg.extract.apart.assign", assigned)
    spare = {level: sum(s.spare for s in schedule.storages.values() if s.level is level) for level in ON_CHIP}
    assert apart(schedule, found().chip) is None
    assert tried == [schedule.shrunk + n for n in spare.values() if n]


def test_places_that_are_apart_have_their_own_flags() -> None:
    assert not races(found().ranked[0].planned.program)
