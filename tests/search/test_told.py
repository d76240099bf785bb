"""The table of moves: no two rows of it read alike, and each says in which form of the kernel its move was made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tile_eg.search.moves import LEFT, MOVES
from tile_eg.search.queue import Offer, Tried
from tile_eg.search.told import rows


def form(name: str) -> Any:
    return SimpleNamespace(name=name)


SMALL, LARGE = form("BM=32"), form("BM=64")


def offer(of: Any, what: str = "the best schedules", bound: float = 0.0) -> Offer:
    return Offer(MOVES["shuffle-k"], what, bound, lambda: pytest.fail("not to be made"), of)


def test_a_move_of_two_forms_has_a_row_for_each() -> None:
    made = [Tried(offer(f), True, us) for f, us in ((SMALL, 8.0), (LARGE, 9.0))]
    assert [row[2:] for row in rows(made, "quick")] == [("BM=32", "8 us"), ("BM=64", "9 us")]


def test_what_gave_the_same_in_two_forms_is_told_of_each() -> None:
    told = rows([Tried(offer(f), True, 8.0) for f in (SMALL, LARGE)], "quick")
    assert len(set(told)) == len(told) == 2


def test_one_form_is_not_named() -> None:
    assert rows([Tried(offer(SMALL), True, 8.0)], "quick") == [("shuffle-k", "the best schedules", "", "8 us")]


@pytest.mark.parametrize("made", [True, False])
def test_what_gave_nothing_for_one_reason_in_all_forms_is_one_row(made: bool) -> None:
    (row,) = rows([Tried(offer(f), made, why="no room") for f in (SMALL, LARGE)], "quick")
    assert row[2] == "all 2" and row[3].endswith("no room")


def test_of_some_forms_it_names_them() -> None:
    left = [Tried(offer(f), False, why="no room") for f in (SMALL, LARGE)]
    assert rows([*left, Tried(offer(form("BM=16")), True, 8.0)], "quick")[1][2] == "BM=32; BM=64"


@pytest.mark.parametrize(("effort", "helps"), [("quick", True), ("full", False)])
def test_what_the_budget_left_names_the_effort_that_makes_it(effort: str, helps: bool) -> None:
    ((*_, gives),) = rows([Tried(offer(SMALL, bound=7.0), False, why=LEFT)], effort)
    assert ("--effort full makes more" in gives) is helps and gives.endswith("(7 us at the least)")
