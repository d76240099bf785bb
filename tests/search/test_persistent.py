"""Persistent kernels of a form's slower schedules: which are made at all."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.search.test_queue import Timed
from tile_eg.search import persistent
from tile_eg.search.form import GAINED_ALIKE, Form
from tile_eg.search.queue import Made


class Searched:
    """A form that takes 100 us; all of its schedules gain alike as persistent kernels."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, effort: str = "quick") -> None:
        monkeypatch.setattr(persistent, "_like", lambda form, candidate: (24, False))
        setting = SimpleNamespace(options=SimpleNamespace(effort=effort))
        self.form: Any = SimpleNamespace(slower_than=lambda bound: bound < 100.0, gained={}, setting=setting)
        self.form.expected, self.form.note_gain = partial(Form.expected, self.form), partial(Form.note_gain, self.form)

    def first(self, monkeypatch: pytest.MonkeyPatch, *takes: float) -> Searched:
        """With the persistent kernels of its best schedule, which take so long."""
        monkeypatch.setattr(persistent, "_planned", lambda form, made: Made(tuple(map(Timed, takes))))  # type: ignore[arg-type]
        persistent._first(self.form, self.candidate(100.0), list)
        return self

    def candidate(self, microseconds: float) -> Any:
        return Timed(microseconds)

    def expects(self, microseconds: float) -> float:
        return persistent.expected_of(self.form, self.candidate(microseconds))


def test_what_the_first_one_gained_is_expected_of_the_others(monkeypatch) -> None:
    assert Searched(monkeypatch).first(monkeypatch, 110.0).expects(200.0) == pytest.approx(220.0 * GAINED_ALIKE)


def test_nothing_is_expected_before_the_first_one_is_made(monkeypatch) -> None:
    assert Searched(monkeypatch).expects(1000.0) == 0


def test_nothing_is_expected_where_the_first_one_has_no_plan(monkeypatch) -> None:
    assert Searched(monkeypatch).first(monkeypatch).expects(1000.0) == 0


def test_the_most_that_any_of_them_gained_counts(monkeypatch) -> None:
    searched = Searched(monkeypatch).first(monkeypatch, 110.0)
    assert searched.first(monkeypatch, 50.0).first(monkeypatch, 120.0).expects(200.0) == pytest.approx(100.0 * GAINED_ALIKE)


def test_all_schedules_on_as_many_cores_have_the_bound_of_the_best_and_the_fastest_comes_first(monkeypatch) -> None:
    searched = Searched(monkeypatch)
    monkeypatch.setattr(persistent, "floor", lambda candidate, chip: candidate.least)
    able = [SimpleNamespace(least=n, schedule=SimpleNamespace(persistent=False)) for n in (40.0, 30.0)]
    searched.form.candidates, searched.form.setting.chip = able, None
    assert [persistent._lowest(searched.form, c) for c in able] == [30.0, 30.0]  # type: ignore[arg-type]


def test_what_takes_more_by_its_own_bound_is_not_planned(monkeypatch) -> None:
    searched = Searched(monkeypatch).first(monkeypatch, 50.0)
    searched.form.setting.chip = None
    monkeypatch.setattr(persistent, "floor", lambda candidate, chip: 101.0)
    assert persistent._least(searched.form, searched.candidate(120.0), list) == 101.0


def test_full_effort_makes_all(monkeypatch) -> None:
    assert Searched(monkeypatch, "full").first(monkeypatch, 110.0).expects(1000.0) == 0


def test_no_plan_is_made_of_what_can_hardly_win(monkeypatch) -> None:
    searched = Searched(monkeypatch).first(monkeypatch, 110.0)

    def made() -> list:
        raise AssertionError("its schedules were made")

    assert persistent._least(searched.form, searched.candidate(120.0), made) >= 100.0
