"""Which shuffled sums are timed: the most hopeful first, and none that cannot win."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tile_eg.search import shuffle_k
from tile_eg.search.candidates import Candidate
from tile_eg.search.shuffle_k import ALIKE

Kernel = tuple[float, float, float]


def timed(monkeypatch: pytest.MonkeyPatch, effort: str, kernels: list[Kernel]) -> tuple[list[float], list[int]]:
    """Which of the kernels, as (expected, bound, time), are timed in a form of 10 us; and those that are kept, by their place."""
    asked: list[float] = []

    def ranked(found: list, model: object) -> tuple[Candidate, ...]:
        ((place, (_, _, time)),) = found
        asked.append(time)
        return (Candidate(place, None, time),)

    monkeypatch.setattr(shuffle_k, "ranked", ranked)
    monkeypatch.setattr(shuffle_k, "bound_of", lambda kernel, like: kernel[1])
    setting = SimpleNamespace(model=None, options=SimpleNamespace(effort=effort))
    form = SimpleNamespace(slower_than=lambda bound: bound < 10.0, setting=setting)
    made = shuffle_k._best_first([(k[0], (n, k), None) for n, k in enumerate(kernels)], form)
    return asked, [c.schedule for c in made]


def test_the_most_hopeful_is_timed_first_and_rules_out_what_its_bound_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert timed(monkeypatch, "full", [(9.5, 9.3, 9.6), (9.0, 8.0, 9.2)]) == ([9.2], [1])


def test_what_is_expected_to_be_slower_is_timed_at_full_effort_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [(9.0, 8.0, 9.0), (9.0 * ALIKE + 0.1, 8.0, 8.9)]
    assert timed(monkeypatch, "quick", kernels) == ([9.0], [0])
    assert timed(monkeypatch, "full", kernels) == ([9.0, 8.9], [1, 0])


def test_among_equals_the_order_of_the_search_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert timed(monkeypatch, "quick", [(9.05, 8.0, 9.0), (9.0, 8.0, 9.0)]) == ([9.0, 9.0], [0, 1])


def test_nothing_is_made_where_nothing_can_win(monkeypatch: pytest.MonkeyPatch) -> None:
    assert timed(monkeypatch, "full", [(9.0, 10.0, 11.0)]) == ([], [])
