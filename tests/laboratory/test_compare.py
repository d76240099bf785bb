"""Cost models on the same schedules: how they order them, and what their choice costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tile_eg.cli.app import run
from tile_eg.cost_models import ModelFault
from tile_eg.cost_models.context import Context
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.laboratory.compare import Row, compare, ranks, rows_of
from tile_eg.laboratory.shown import as_csv, as_table, plot

EXAMPLES = Path(__file__).parents[2] / "examples"


def row(times: tuple[float, ...], truth: tuple[float, ...] = (1.0, 2.0, 3.0)) -> Row:
    return Row("k", "m", times, truth, 0.5)


def softmax():
    return load_text((EXAMPLES / "softmax.tile").read_text(), "softmax.tile").instantiate({})


def test_the_same_order_correlates_fully() -> None:
    assert row((10.0, 20.0, 90.0)).correlation == pytest.approx(1)


def test_the_opposite_order_correlates_fully_the_other_way() -> None:
    assert row((3.0, 2.0, 1.0)).correlation == pytest.approx(-1)


def test_a_model_that_finds_all_equal_has_no_correlation() -> None:
    assert row((1.0, 1.0, 1.0)).correlation != row((1.0, 1.0, 1.0)).correlation


def test_a_model_that_finds_all_equal_regrets_what_chance_would() -> None:
    assert row((1.0, 1.0, 1.0)).regret == pytest.approx(1.0)


def test_no_choice_is_better_than_the_best_by_rounding() -> None:
    alike = Row("k", "m", (7.67,) * 3, (7.67,) * 3, 0.0)  # whose mean is a last digit less
    assert f"{alike.regret:.1%}" == "0.0%"


def test_the_table_says_where_there_is_no_order_to_correlate() -> None:
    assert "all equal" in as_table([row((1.0, 1.0, 1.0))])


def test_equal_values_share_their_rank() -> None:
    assert ranks([5.0, 1.0, 5.0]).tolist() == [1.5, 0.0, 1.5]


def test_regret_is_what_the_chosen_schedule_costs_over_the_best() -> None:
    assert row((2.0, 1.0, 3.0)).regret == pytest.approx(1.0)


@pytest.mark.slow
def test_the_timeline_never_regrets_its_own_choice() -> None:
    rows = compare([softmax()], ["timeline", "analytic", "roofline"], k=3, random=2)
    assert [r.regret for r in rows if r.model == "timeline"] == [0] and len(rows[0].times) >= 2


class Busiest:
    """A context model."""

    def __init__(self, chip: object) -> None:
        pass

    def score(self, contexts: Sequence[Context]) -> list[float]:
        return [c.features["busiest"] for c in contexts]


@pytest.mark.slow
def test_a_context_model_is_held_against_schedules_of_kernels() -> None:
    (judged,) = compare([softmax()], [f"{__name__}:Busiest"], k=2, random=0)
    assert len(set(judged.times)) > 1


def test_a_model_that_does_nothing_is_told_what_models_do_before_anything_is_compiled() -> None:
    with pytest.raises(TileError, match="nor score") as told:
        compare(iter(()), ["builtins:repr"])
    assert "score(contexts)" in (told.value.help or "")


def test_an_unknown_model_is_refused_before_anything_is_compiled() -> None:
    with pytest.raises(TileError, match="unknown cost model 'timelime'"):
        compare([softmax()], ["timelime"])


def test_csv_has_a_line_for_each_kernel_and_model() -> None:
    text = as_csv([row((1.0, 2.0, 3.0)), row((3.0, 2.0, 1.0))])
    assert text.splitlines()[0].startswith("kernel,model,schedules") and len(text.splitlines()) == 3


def test_csv_of_a_dataset_has_the_intervals_of_the_table() -> None:
    head, line = (text.split(",") for text in as_csv([row((1.0, 3.0, 2.0))], k=2).splitlines())
    told = dict(zip(head, line, strict=True))
    assert float(told["regret_low"]) <= float(told["regret"]) <= float(told["regret_high"])
    assert told["best_of"] == "2" and float(told["regret_of_best"]) >= 0


def test_the_table_shows_regret_in_percent() -> None:
    assert "100.0%" in as_table([row((2.0, 1.0, 3.0))])


@pytest.mark.slow
def test_a_plot_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot([row((1.0, 2.0, 3.0))], tmp_path / "out.svg")
    assert "<svg" in (tmp_path / "out.svg").read_text()


@pytest.mark.slow
def test_a_plot_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(TileError, match="cannot write the plot"):
        plot([row((1.0, 2.0, 3.0))], tmp_path / "out.nonsense")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["softmax.tile", "--judge", "softmax"], "--judge is for a data"), (["a.tile", "--best-of", "5"], "--best-of is for a"),
        (["--data", "d", "--random", "6"], "--random is for kernels"), (["--data", "d", "--set", "M=64"], "--set is for kernels"),
    ],
)  # fmt: skip
def test_an_option_without_an_effect_is_refused(capsys: pytest.CaptureFixture[str], given: list[str], told: str) -> None:
    assert run(["compare-models", *given]) == 1
    assert told in capsys.readouterr().err


class Unsure:
    """Knows no time."""

    name = "unsure"

    def __init__(self, chip: object) -> None:
        pass

    def predict(self, programs: Sequence[object]) -> list[float]:
        return [float("nan")] * len(programs)


def of_unsure(*more: str) -> list[str]:
    return ["compare-models", str(EXAMPLES / "softmax.tile"), "-k", "2", "--random", "0", "--models", *more]


def test_a_model_that_fails_ends_the_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(of_unsure(f"timeline,{__name__}:Unsure")) == 1
    assert "--model-faults skip goes on without the model" in capsys.readouterr().err


def test_a_comparison_may_go_on_without_a_model_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(of_unsure(f"{__name__}:Unsure,timeline", "--model-faults", "skip")) == 0
    told = capsys.readouterr()
    assert "said nan microseconds of program 1; it is left out" in told.err
    assert "timeline" in told.out and "Unsure" not in told.out


def test_a_comparison_of_no_model_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(of_unsure(f"{__name__}:Unsure", "--model-faults", "skip")) == 1
    assert "no model is left to compare" in capsys.readouterr().err


def test_a_model_that_fails_in_a_later_case_is_left_out_of_all() -> None:
    def judged(name: str, case: int) -> list[Row]:
        if (name, case) == ("a", 2):
            raise ModelFault("broken")
        return [Row(str(case), name, (1.0,), (1.0,), 0.0)]

    told: list[ModelFault] = []
    assert [(r.kernel, r.model) for r in rows_of(["a", "b"], [1, 2], judged, told.append)] == [("1", "b"), ("2", "b")]
    assert len(told) == 1
