"""What the models by name say, and what happens when one of them talks nonsense."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cost_models.test_cost_models import CHIP, exps
from tile_eg.cost_models import ModelFault, named, node_cost, observed, patience, predicted, rank_model, search_model, taught
from tile_eg.errors import TileError
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.work import Work

COPY = Work("gm_to_l1", 128, 64)


class Says:
    """A model that answers with whatever it was made of."""

    name = "says"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def node_cost(self, work):
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"AIC.M": self.answer}

    def predict(self, programs):
        return [self.answer] * len(programs)


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), -1.0])
def test_what_is_no_number_of_cycles_is_refused_with_the_node(answer: float) -> None:
    with pytest.raises(TileError, match="'says', asked for gm_to_l1 of 128 x 64 f32, said .* cycles on AIC.M"):
        node_cost(Says(answer), COPY)


def test_a_model_that_raises_is_named_with_the_node() -> None:
    with pytest.raises(TileError, match="'says', asked for gm_to_l1 of 128 x 64 f32, raised KeyError"):
        node_cost(Says(KeyError("x")), COPY)


def test_what_is_no_time_is_refused_with_the_program() -> None:
    with pytest.raises(TileError, match="said nan microseconds of program 1"):
        predicted(Says(float("nan")), [exps(1)])


class Talks:
    """A model that does one thing whatever it is asked."""

    name = "talks"

    def __init__(self, does: Callable[[], object]) -> None:
        self.does = does

    def predict(self, programs):
        return self.does()

    def observe(self, contexts, microseconds):
        return self.does()

    update = predict


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (lambda: None, "gave None, which is no list of numbers"),
        (lambda: ["quick"], "gave 'quick', which is no number"),
        (lambda: {"a": 1.0}, "no list of numbers"),
        (list, "gave 0 times"),
        (lambda: sys.exit(3), "raised SystemExit: 3"),
    ],
)
def test_an_answer_of_another_kind_is_told_as_what_it_is(does: Callable[[], object], told: str) -> None:
    with pytest.raises(TileError, match=told):
        predicted(Talks(does), [exps(1)])


def test_a_model_that_fails_to_learn_is_named() -> None:
    with pytest.raises(TileError, match="'talks', given 1 programs to learn, raised ZeroDivisionError"):
        taught(Talks(lambda: 1 / 0), [(exps(1), 1.0)])


def test_a_model_that_fails_to_observe_is_named() -> None:
    with pytest.raises(TileError, match="'talks', told the times of 0 candidates, raised ZeroDivisionError"):
        observed(Talks(lambda: 1 / 0), [], [])


def test_a_roofline_is_a_lower_bound_of_the_timeline() -> None:
    programs = [exps(1), exps(9)]
    assert all(
        a < b
        for a, b in zip(
            rank_model("roofline", CHIP).predict(programs), rank_model("timeline", CHIP).predict(programs), strict=True
        )
    )


def test_a_roofline_is_not_above_the_tables() -> None:
    product = Work("mmad", 128, 256, 64)
    for work in (COPY, product):
        assert search_model("roofline", CHIP).node_cost((work,))[work.pipe] <= 1.01 * cycles(CHIP, work)


def test_an_empty_table_asks_for_measurements() -> None:
    with pytest.raises(TileError, match="holds no measurements"):
        rank_model("table", CHIP).predict([exps(1)])


def test_a_table_gives_back_what_it_was_told() -> None:
    model = rank_model("table", CHIP)
    model.update([(exps(2), 7.0), (exps(50), 90.0)])
    assert model.predict([exps(2), exps(50)]) == pytest.approx([7.0, 90.0], rel=1e-3)


def test_a_saved_table_is_loaded_by_name(tmp_path: Path) -> None:
    model = rank_model("table", CHIP)
    model.update([(exps(2), 7.0)])
    model.save(tmp_path / "t.json")
    assert named(f"table@{tmp_path / 't.json'}", CHIP).predict([exps(2)]) == pytest.approx([7.0])


def test_a_table_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"rows": [1]}')
    with pytest.raises(TileError, match="cannot read the cost model file"):
        named(f"table@{tmp_path / 't.json'}", CHIP)


def test_a_model_of_ones_own_is_found_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "class Mine:\n    def __init__(self, chip): pass\n    def node_cost(self, work): return {'AIC.M': 1.0}\n"
    (tmp_path / "my_own_model.py").write_text(body)
    monkeypatch.chdir(tmp_path)
    assert node_cost(search_model("my_own_model:Mine", CHIP), COPY) == {"AIC.M": 1.0}


@pytest.mark.parametrize("answer", ["5", b"5"])
def test_a_text_is_no_number_of_cycles_and_no_time(answer: object) -> None:
    with pytest.raises(TileError, match="which is no number"):
        node_cost(Says(answer), COPY)
    with pytest.raises(TileError, match="which is no number"):
        predicted(Says(answer), [exps(1)])


def test_a_pipe_that_no_core_has_is_refused_with_those_that_there_are() -> None:
    model = Says(1.0)
    model.node_cost = lambda work: {"AIC.V": 1.0}  # type: ignore[method-assign]
    with pytest.raises(TileError, match="said 1.0 cycles on 'AIC.V'") as error:
        node_cost(model, COPY)
    assert "AIV.V" in error.value.help


class Unmade:
    def __init__(self, chip: object) -> None:
        raise LookupError("no board")


class TakesNothing:
    def node_cost(self, work):
        return {}


@pytest.mark.parametrize(("name", "why"), [("Unmade", "LookupError: no board"), ("TakesNothing", "takes no arguments")])
def test_a_model_that_cannot_be_made_with_a_chip_says_why(name: str, why: str) -> None:
    with pytest.raises(TileError, match=f"making the cost model '{__name__}:{name}' failed: .*{why}"):
        named(f"{__name__}:{name}", CHIP)


def test_a_module_that_fails_is_told_as_the_models_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_failing_model.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TileError, match="ZeroDivisionError"):
        named("my_failing_model:Mine", CHIP)


class ReadsNothing(TakesNothing):
    def __init__(self, chip: object) -> None: ...

    def load(self, path: Path) -> None:
        raise KeyError("weights")


class NeverMade:
    def __init__(self, chip: object) -> None:
        while True:
            pass


def test_a_model_that_cannot_read_its_file_is_named_with_the_file() -> None:
    with pytest.raises(ModelFault, match="'.*:ReadsNothing' cannot read 'mine.json': KeyError: 'weights'"):
        named(f"{__name__}:ReadsNothing@mine.json", CHIP)


def test_a_model_that_reads_no_file_says_so() -> None:
    with pytest.raises(TileError, match="has no load"):
        named(f"{__name__}:Unlike@mine.json", CHIP)


class Unlike(TakesNothing):
    def __init__(self, chip: object) -> None: ...


def test_making_a_model_ends_when_patience_does() -> None:
    with patience(0.05), pytest.raises(ModelFault, match="took more than 0.05 seconds"):
        named(f"{__name__}:NeverMade", CHIP)
