"""A kernel is compiled with a cost model of the user's own: it guides the search, ranks what was found, or both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tile_eg.chips import Chip, load_chip
from tile_eg.cli import app
from tile_eg.cost_models import Roles, roles
from tile_eg.errors import TileError
from tile_eg.ir.program import Program
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower
from tile_eg.timeline.work import Work

GEMM = Path(__file__).parents[2] / "examples" / "gemm.tile"
EXP = Path(__file__).parents[2] / "examples" / "gemm_exp.tile"
CHIP = load_chip()


class Model:
    def __init__(self, chip: Chip) -> None:
        self.chip = chip


class Slowest(Model):
    """Ranks programs the other way round."""

    def predict(self, programs: Sequence[Program]) -> list[float]:
        model = tile_eg.cost_models.rank_model("timeline", self.chip)
        return [1e3 / t for t in model.predict(programs)]


class FarStores(Model):
    """Everything is free but what the fixpipe does."""

    def node_cost(self, work: tuple[Work, ...]) -> dict[str, float]:
        return {w.pipe: 1e5 if w.op == "fixpipe" and w.other == "GM" else 1.0 for w in work}


class Nothing(Model):
    def node_cost(self, work: tuple[Work, ...]) -> dict[str, float]:
        return {}

    def predict(self, programs: Sequence[Program]) -> list[float]:
        return [0.0] * len(programs)


class OnePipe(Model):
    """Says of every instruction that it runs on the vector pipe."""

    def node_cost(self, work: tuple[Work, ...]) -> dict[str, float]:
        return {"AIV.V": 1.0}


def compiled(model: type | None, file: Path = GEMM) -> Lowered:
    name = f"{__name__}:{model.__name__}" if model else None
    return lower(tile_eg.load(file).with_sizes().kernel, search=search_options(cost_model=name))


@pytest.mark.parametrize(
    ("name", "both"),
    [
        (None, Roles("analytic", "timeline")), ("roofline", Roles("roofline", "roofline")),
        ("analytic", Roles("analytic", "timeline")), ("timeline", Roles("analytic", "timeline")),
        (f"{__name__}:OnePipe", Roles(f"{__name__}:OnePipe", "timeline")),
        (f"{__name__}:Slowest", Roles("analytic", f"{__name__}:Slowest")),
    ],
)  # fmt: skip
def test_a_model_does_what_it_can_and_the_default_the_rest(name: str | None, both: Roles) -> None:
    assert roles(name, CHIP) == both


def test_a_class_that_does_neither_is_no_model() -> None:
    with pytest.raises(TileError, match="neither predict nor node_cost"):
        roles(f"{__name__}:Model", CHIP)


@pytest.mark.slow
def test_a_rank_model_of_ones_own_decides() -> None:
    assert compiled(Slowest).timeline.cycles > compiled(None).timeline.cycles


@pytest.mark.slow
def test_a_search_model_of_ones_own_changes_what_is_found() -> None:
    assert "FixToGM" not in {n.op for n in compiled(FarStores).candidates[0].schedule.nodes}


@pytest.mark.slow
def test_the_explanation_says_who_guided_and_who_decided() -> None:
    assert f"guided by {__name__}:FarStores, and timeline decided" in str(compiled(FarStores).explanation)


@pytest.mark.slow
@pytest.mark.parametrize("model", [Nothing, OnePipe])
def test_what_a_model_says_of_pipes_changes_no_numbers(model: type) -> None:
    low = compiled(model, EXP)
    inputs = {t.name: np.zeros(t.shape, np.float16) for t in low.kernel.tensors if not t.output}
    assert (low.run(inputs)["D"] == 1).all()


@pytest.mark.slow
def test_the_command_line_takes_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["explain", str(GEMM), "--cost-model", "roofline"]) == 0
    assert "guided by roofline" in capsys.readouterr().out


def test_the_command_line_refuses_an_unknown_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["emit", str(GEMM), "--cost-model", "oracle"]) == 1
    assert "unknown cost model 'oracle'" in capsys.readouterr().err
