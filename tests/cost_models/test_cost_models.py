"""Cost models: how they are found, what they say, what they learn."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tile_eg.chips import Chip, load_chip
from tile_eg.cost_models import MODELS, RankModel, SearchModel, named, rank_model, search_model
from tile_eg.errors import TileError
from tile_eg.ir.index import const
from tile_eg.ir.program import Buffer, Instr, Program, Tile
from tile_eg.ops.types import F16, F32, Level
from tile_eg.timeline.engine import run
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.work import Work

CHIP = load_chip()


class Flat:
    """A user's model, found as module:Class: every instruction costs one."""

    name = "flat"

    def __init__(self, chip: Chip) -> None:
        self.chip = chip

    def node_cost(self, work: tuple[Work, ...]) -> dict[str, float]:
        return {"AIV.V": float(len(work))}


def exps(n: int) -> Program:
    buffers = (Buffer("a", Level.UB, F32, 64, 64, 64),)
    node = Instr("vexp", Tile("a"), (Tile("a"),), const(64), const(64))
    return Program("p", "910B2", "AIV_ONLY", (), 1, False, 0, buffers, (), (node,) * n)


def test_a_vector_instruction_pays_its_start_up_and_a_constant_does_not() -> None:
    model, add, fill = search_model("analytic", CHIP), Work("vadds", 64, 64), Work("vdup", 64, 64)
    assert model.node_cost((add,))["AIV.V"] == cycles(CHIP, add, cold=True) > cycles(CHIP, add)
    assert model.node_cost((fill,))["AIV.V"] == cycles(CHIP, fill)


def test_analytic_adds_up_by_pipe() -> None:
    load, mul = Work("gm_to_l1", 64, 64, dtype=F16), Work("mmad", 64, 64, 64, F32, F16)
    cost = search_model("analytic", CHIP).node_cost((load, mul, mul))
    assert cost == {"AIC.MTE2": cycles(CHIP, load), "AIC.M": pytest.approx(2 * cycles(CHIP, mul))}


def test_nothing_costs_nothing() -> None:
    assert search_model("analytic", CHIP).node_cost(()) == {}


def test_timeline_predicts_what_the_engine_finds() -> None:
    programs = [exps(3), exps(1)]
    assert rank_model("timeline", CHIP).predict(programs) == [run(p, CHIP).microseconds for p in programs]


def test_timeline_learns_a_factor_from_measurements() -> None:
    model = rank_model("timeline", CHIP)
    model.update([(p, 2 * run(p, CHIP).microseconds) for p in (exps(1), exps(5))])
    assert model.predict([exps(2)])[0] == pytest.approx(2 * run(exps(2), CHIP).microseconds)


def test_no_measurements_change_nothing() -> None:
    model = rank_model("timeline", CHIP)
    model.update([])
    assert model.predict([exps(1)])[0] == run(exps(1), CHIP).microseconds


def test_what_was_learnt_is_saved_and_loaded(tmp_path: Path) -> None:
    taught, fresh = rank_model("timeline", CHIP), rank_model("timeline", CHIP)
    taught.update([(exps(1), 100.0)])
    taught.save(tmp_path / "model.json")
    fresh.load(tmp_path / "model.json")
    assert fresh.predict([exps(4)]) == taught.predict([exps(4)])


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("[]")
    with pytest.raises(TileError, match="cannot read the cost model file"):
        rank_model("timeline", CHIP).load(tmp_path / "model.json")


def test_a_missing_model_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="No such file"):
        rank_model("timeline", CHIP).load(tmp_path / "none.json")


def test_a_model_of_ones_own_is_found_by_module_and_class() -> None:
    model = search_model(f"{Flat.__module__}:Flat", CHIP)
    assert model.node_cost((Work("vexp", 1, 1),)) == {"AIV.V": 1.0}


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(TileError, match="unknown cost model 'oracle'") as error:
        search_model("oracle", CHIP)
    assert all(name in error.value.help for name in MODELS)


@pytest.mark.parametrize("name", ["no_such_module:Model", "tile_eg.cost_models.analytic:NoSuchClass"])
def test_a_model_that_cannot_be_loaded_says_so(name: str) -> None:
    with pytest.raises(TileError, match="cannot load the cost model"):
        search_model(name, CHIP)


def test_a_module_that_is_nowhere_says_where_it_was_looked_for() -> None:
    with pytest.raises(TileError, match="No module named 'no_such_module'") as error:
        search_model("no_such_module:Model", CHIP)
    assert "PYTHONPATH" in error.value.help


def test_a_rank_model_cannot_guide_the_search() -> None:
    with pytest.raises(TileError, match="cannot guide the search"):
        search_model("timeline", CHIP)


def test_a_search_model_cannot_rank() -> None:
    with pytest.raises(TileError, match="cannot rank programs"):
        rank_model("analytic", CHIP)


def test_the_built_in_models_keep_their_interfaces() -> None:
    assert isinstance(search_model("analytic", CHIP), SearchModel)
    assert isinstance(rank_model("timeline", CHIP), RankModel)


LEAVES = "class Leaves:\n    def __init__(self, chip):\n        raise SystemExit(4)\n"


@pytest.mark.parametrize("text", ["raise SystemExit(4)\n", LEAVES], ids=["its module", "its making"])
def test_a_model_that_ends_the_process_is_its_authors_to_mend(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model_that_leaves.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "model_that_leaves", raising=False)
    with pytest.raises(TileError, match="SystemExit: 4"):
        named("model_that_leaves:Leaves", load_chip("910B2"))
