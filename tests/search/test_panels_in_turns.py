"""A tile whose load, work and store wait for each other goes through UB in panels, one beside the other."""

from __future__ import annotations

from functools import cache

import pytest

from tests.search.test_options import example
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower

MOVE = "panels-in-turns"


@cache
def softmax(*without: str, rows: int = 8192) -> Lowered:
    return lower(example("softmax", M=rows, N=1024), search=search_options(without=without))


def made(low: Lowered) -> list[str]:
    return [t.offer.what for t in low.tried if t.made and t.offer.move.name == MOVE]


@pytest.mark.slow
def test_one_panel_is_loaded_while_another_is_worked_on() -> None:
    assert softmax().candidates[0].microseconds < 0.95 * softmax(MOVE).candidates[0].microseconds


@pytest.mark.slow
def test_where_two_panels_leave_little_to_gain_no_more_are_tried() -> None:
    assert made(softmax()) == ["2"]


def test_cores_with_one_tile_each_have_no_panels() -> None:
    assert not [t for t in softmax(rows=256).tried if t.offer.move.name == MOVE]


@pytest.mark.slow
def test_a_kernel_whose_pipes_hardly_wait_has_no_panels() -> None:
    add = lower(example("vector_add", M=4096, N=4096))
    assert [t.made for t in add.tried if t.offer.move.name == MOVE] == [False]
