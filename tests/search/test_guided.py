"""A search guided by a context model: it re-ranks candidates, prices nodes at the margin, and the rank model decides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

import tile_eg
from tile_eg.chips import Chip, load_chip
from tile_eg.cli import app
from tile_eg.cost_models import Roles, roles
from tile_eg.cost_models.context import Context, context
from tile_eg.errors import TileError
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower
from tile_eg.search.guided import Guide

EXAMPLES = Path(__file__).parents[2] / "examples"
GEMM = EXAMPLES / "gemm.tile"


class Model:
    def __init__(self, chip: Chip) -> None:
        self.asked: list[int] = []

    def score(self, contexts: Sequence[Context]) -> list[float]:
        self.asked.append(len(contexts))
        return [c.features["launch"] + c.features["overlapped"] for c in contexts]


class Learns(Model):
    """Takes what it was told of a candidate for its score; of others it thinks the worst."""

    told: list[tuple[float, float]] = []

    def observe(self, contexts: Sequence[Context], microseconds: Sequence[float]) -> None:
        self.told += [(c.features["busiest"], us) for c, us in zip(contexts, microseconds, strict=True)]


class OnlyLoads(Model):
    """Says that nothing but loads from GM takes time."""

    def score(self, contexts: Sequence[Context]) -> list[float]:
        return [c.features["us.AIC.MTE2"] for c in contexts]


class Nan(Model):
    def score(self, contexts: Sequence[Context]) -> list[float]:
        return [float("nan")] * len(contexts)


class TooFew(Model):
    def score(self, contexts: Sequence[Context]) -> list[float]:
        return []


class Raises(Model):
    def predict(self, programs: Sequence[object]) -> list[float]:
        raise ZeroDivisionError("no such weight")


class NeverMade:
    def __init__(self, chip) -> None:
        raise LookupError("no board")


class Never(Model):
    def predict(self, programs: Sequence[object]) -> list[float]:
        while True:
            pass


class SaysNanOfTheSecond(Model):
    def predict(self, programs: Sequence[object]) -> list[float]:
        return [1.0, float("nan"), *([1.0] * len(programs))][: len(programs)]


@cache
def compiled(model: type | None, **more: object) -> Lowered:
    name = f"{__name__}:{model.__name__}" if model else None
    return lower(tile_eg.load(GEMM).with_sizes().kernel, search=search_options(cost_model=name, **more))  # type: ignore[arg-type]


def test_a_model_with_score_orders_and_the_timeline_decides() -> None:
    name = f"{__name__}:Model"
    assert roles(name, load_chip()) == Roles("analytic", "timeline", name)


@pytest.mark.slow
def test_what_it_finds_is_timed_by_the_rank_model_and_told() -> None:
    low = compiled(Model)
    assert low.candidates[0].microseconds == pytest.approx(low.timeline.microseconds)
    assert f"candidates were ordered by {__name__}:Model, and timeline decided" in str(low.explanation)


@pytest.mark.slow
def test_schedules_are_tried_at_the_margin_of_the_best() -> None:
    assert any(t.offer.move.name == "at-the-margin" and t.made for t in compiled(Model).tried)
    assert not any(t.offer.move.name == "at-the-margin" for t in compiled(None).tried)


@pytest.mark.slow
def test_a_cycle_costs_what_it_adds_to_the_candidate() -> None:
    best = compiled(None).candidates[0]
    rates = Guide(OnlyLoads(load_chip()), load_chip()).rates(best)
    assert rates["AIC.MTE2"] == 1 and max(rate for pipe, rate in rates.items() if pipe != "AIC.MTE2") < 0.1


def test_candidates_stand_in_the_order_of_the_model_as_it_is_now() -> None:
    found = compiled(None).candidates
    model = Learns(load_chip())
    model.score = lambda contexts: [-c.features["busiest"] for c in contexts]  # type: ignore[method-assign]
    places = Guide(model, load_chip()).order(found)
    most = max(found, key=lambda c: context(c.planned.program, load_chip()).features["busiest"])
    assert places[id(most)] == 0 and len(model.told) >= len(found)


def test_more_load_is_told_by_the_features() -> None:
    before = context(compiled(None).program, load_chip())
    after = before.more("AIC.MTE2", 1800)
    assert after.features["us.AIC.MTE2"] == pytest.approx(before.features["us.AIC.MTE2"] + before.waves)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "told"), [(Nan, "said nan of candidate 1"), (TooFew, "gave 0 times")])
def test_a_context_model_that_fails_is_named(model: type, told: str) -> None:
    with pytest.raises(TileError, match=told) as error:
        compiled(model)
    assert "schedule 1: " in str(error.value) and "--model-faults default" in str(error.value)


@pytest.mark.slow
def test_a_model_that_raises_stops_the_search_with_its_schedules() -> None:
    with pytest.raises(TileError, match="raised ZeroDivisionError: no such weight") as error:
        compiled(Raises)
    assert "schedule 1: " in str(error.value)


@pytest.mark.slow
def test_the_schedule_of_a_wrong_answer_is_named() -> None:
    with pytest.raises(TileError, match="said nan microseconds of program 2") as error:
        compiled(SaysNanOfTheSecond)
    assert "schedule 2: " in str(error.value) and "schedule 1: " not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "told"), [(Raises, "ZeroDivisionError"), (Never, "gave no answer in 0.2 seconds"), (NeverMade, "LookupError")]
)
def test_the_default_takes_over_where_that_is_asked(model: type, told: str) -> None:
    low = compiled(model, model_faults="default", model_seconds=0.2)
    assert low.source == compiled(None).source
    assert any(told in m and "default models took over" in m for m in low.messages)


@pytest.mark.slow
def test_a_model_that_never_answers_is_ended() -> None:
    with pytest.raises(TileError, match="gave no answer in 0.1 seconds"):
        compiled(Never, model_seconds=0.1)


@pytest.mark.parametrize(("given", "told"), [({"model_faults": "go on"}, "stop or default"), ({"model_seconds": 0}, "above 0")])
def test_options_that_say_nothing_are_refused(given: dict, told: str) -> None:
    with pytest.raises(TileError, match=told):
        search_options(**given)


@pytest.mark.slow
def test_the_command_line_goes_on_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["emit", str(GEMM), "--cost-model", f"{__name__}:Raises", "--model-faults", "default"]
    assert app.run(command) == 0
    assert "the default models took over" in capsys.readouterr().err
