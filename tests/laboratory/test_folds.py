"""Models taught on some kernels and judged on others: what is left out, what is learnt, what is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.laboratory.test_dataset import case
from tile_eg.chips import Chip, load_chip
from tile_eg.cli import app
from tile_eg.cost_models import named
from tile_eg.cost_models.context import context
from tile_eg.errors import TileError
from tile_eg.ir.program import Program
from tile_eg.laboratory import Dataset
from tile_eg.laboratory.compare import Row, summaries
from tile_eg.laboratory.dataset import Piece, rows_of_piece
from tile_eg.laboratory.folds import cross_validated
from tile_eg.laboratory.shown import schedules_csv, with_intervals
from tile_eg.laboratory.stored import write_rows

pytestmark = pytest.mark.slow(but=1)

MODELS = Path(__file__).parents[2] / "examples" / "models"
SIZES = {"M": 256, "N": 512}


@cache
def data() -> Dataset:
    """Twelve rows of each of two kernels."""
    pieces = [Piece(case(name, **SIZES), 0, 0) for name in ("softmax", "rms_norm")]
    each = [list({r.key: r for r in rows_of_piece(p)}.values())[:12] for p in pieces]
    return Dataset(tuple(r for rows in each for r in rows))


class Notes:
    """Remembers of which kernels it was taught; says what it learnt of none."""

    taught: list[set[str]] = []

    def __init__(self, chip: Chip) -> None:
        pass

    def update(self, measurements: Sequence[tuple[Program, float]]) -> None:
        self.taught.append({p.name for p, _ in measurements})

    def predict(self, programs: Sequence[Program]) -> list[float]:
        return [float(n + 1) for n in range(len(programs))]


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models of the examples can be named."""
    monkeypatch.syspath_prepend(str(MODELS))


@pytest.mark.slow
def test_a_model_is_not_taught_what_it_is_judged_on() -> None:
    Notes.taught.clear()
    rows = cross_validated(data(), [f"{__name__}:Notes"])
    assert [r.kernel for r in rows] == ["softmax", "rms_norm"]
    assert Notes.taught == [{"rms_norm"}, {"softmax"}]


@pytest.mark.slow
def test_the_kernels_to_judge_are_one_fold() -> None:
    Notes.taught.clear()
    rows = cross_validated(data(), [f"{__name__}:Notes"], judged=["rms_norm"])
    assert [r.kernel for r in rows] == ["rms_norm"] and Notes.taught == [{"softmax"}]


def test_nothing_is_taught_where_that_is_asked() -> None:
    Notes.taught.clear()
    cross_validated(data(), [f"{__name__}:Notes"], "none")
    assert Notes.taught == []


def test_the_truth_are_the_labels_and_a_search_model_is_judged_too() -> None:
    timeline, analytic = cross_validated(data(), ["timeline", "analytic"], "none")[:2]
    assert timeline.times == pytest.approx(timeline.truth) and timeline.regret == 0
    assert len(set(analytic.times)) > 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"folds": "size"}, "kernel, case, none"), ({"judged": ["gemm"]}, "has no kernel 'gemm'"),
        ({"judged": ["softmax", "rms_norm"]}, "nothing to learn from"),
    ],
)  # fmt: skip
def test_folds_that_cannot_be_are_told(given: dict, told: str) -> None:
    with pytest.raises(TileError, match=told):
        cross_validated(data(), [f"{__name__}:Notes"], **given)


def test_rows_of_a_chip_that_is_none_are_told() -> None:
    with pytest.raises(TileError, match="unknown chip '910Z'"):
        cross_validated(Dataset(tuple(replace(r, chip="910Z") for r in data().rows)), ["analytic"])


def test_rows_of_two_chips_are_refused() -> None:
    other = replace(data().rows[0], chip="950")
    with pytest.raises(TileError, match="2 chips"):
        cross_validated(Dataset((other, *data().rows)), ["analytic"])


def test_the_best_of_k_is_no_worse_than_the_first() -> None:
    row = Row("k", "m", (1.0, 2.0, 3.0), (3.0, 1.0, 2.0), 0.0)
    assert (row.regret_of(1), row.regret_of(2)) == (2.0, 0.0)


def test_an_interval_holds_its_measure_and_narrows_with_more_schedules() -> None:
    random = np.random.default_rng(1)
    truth = random.uniform(1, 2, 80)
    said = truth + random.normal(0, 0.3, 80)
    widths = []
    for count in (20, 80):
        row = Row("k", "m", tuple(said[:count]), tuple(truth[:count]), 0.0)
        low, high = row.interval(lambda r: r.correlation)
        assert low < row.correlation < high
        widths.append(high - low)
    assert widths[1] < widths[0]


def test_a_summary_is_the_mean_over_cases() -> None:
    rows = [Row("a", "m", (1.0, 2.0), (1.0, 2.0), 0.5), Row("b", "m", (2.0, 1.0), (1.0, 2.0), 0.5)]
    (one,) = summaries(rows, 1)
    assert (one.correlation, one.regret, one.seconds) == pytest.approx((0.0, 0.5, 1.0))
    assert one.correlation_between == pytest.approx((-1.0, 1.0))


def test_every_schedule_is_a_line_of_the_csv() -> None:
    rows = cross_validated(data(), ["timeline"], "none")
    lines = schedules_csv(rows).splitlines()
    assert lines[0].startswith("case,model,schedule") and len(lines) == 1 + len(data())
    assert "means over the cases" in with_intervals(rows, 3)


def test_a_ridge_regression_learns_and_is_loaded_again(models: None, tmp_path: Path) -> None:
    chip = load_chip()
    made, again = named("ridge:Ridge", chip), named("ridge:Ridge", chip)
    made.update(list(zip(data().programs, map(float, data().labels), strict=True)))
    said = np.array(made.predict(data().programs))
    assert np.abs(said / data().labels - 1).mean() < 0.05
    made.save(tmp_path / "r.json")
    again.load(tmp_path / "r.json")
    assert again.predict(data().programs[:3]) == pytest.approx(said[:3].tolist())


def test_it_orders_by_the_context_as_by_the_program(models: None) -> None:
    made = named("ridge:Order", load_chip())
    made.observe([context(p, load_chip()) for p in data().programs], list(data().labels))
    assert made.score([context(data().programs[0], load_chip())])[0] == pytest.approx(data().labels[0], rel=0.2)


def test_what_has_learnt_nothing_says_so(models: None) -> None:
    with pytest.raises(TileError, match="has learnt nothing"):
        named("ridge:Ridge", load_chip()).predict(data().programs[:1])


def test_trees_learn(models: None) -> None:
    pytest.importorskip("sklearn", reason="trees need scikit-learn (pip install 'tile_eg[learn]')")
    made = named("trees:Trees", load_chip())
    made.update(list(zip(data().programs, map(float, data().labels), strict=True)))
    assert np.abs(np.array(made.predict(data().programs)) / data().labels - 1).mean() < 0.03


def test_without_scikit_learn_trees_say_what_they_need(models: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(TileError, match="need scikit-learn"):
        named("trees:Trees", load_chip()).update([(data().programs[0], 1.0)])


def test_a_graph_network_learns(models: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="graph networks need torch (pip install 'tile_eg[torch]')")
    import graph_net

    monkeypatch.setattr(graph_net, "EPOCHS", 5)
    made = named("graph_net:GraphNet", load_chip())
    made.update(list(zip(data().programs, map(float, data().labels), strict=True)))
    made.save(tmp_path / "g.pt")
    again = named(f"graph_net:GraphNet@{tmp_path / 'g.pt'}", load_chip())
    assert again.predict(data().programs[:2]) == pytest.approx(made.predict(data().programs[:2]))


def test_the_command_line_teaches_and_judges(models: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(data().rows, tmp_path / "rows.jsonl")
    out = tmp_path / "order.json"
    assert app.run(["teach", "ridge:Order", "--data", str(tmp_path), "--without", "rms_norm", "-o", str(out)]) == 0
    assert f"learnt {sum(r.kernel == 'softmax' for r in data().rows)} schedules" in capsys.readouterr().out
    given = ["--models", f"ridge:Order@{out},timeline", "--folds", "none", "--schedules", str(tmp_path / "s.csv")]
    assert app.run(["compare-models", "--data", str(tmp_path), *given]) == 0
    assert "means over the cases" in capsys.readouterr().out and (tmp_path / "s.csv").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["teach", "analytic", "-o", "x.json"], "does not learn"), (["compare-models", "--chip", "950"], "has its chip"),
        (["compare-models", "some.tile"], "either kernels or a dataset"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], told: str) -> None:
    write_rows(data().rows, tmp_path / "rows.jsonl")
    assert app.run([*given, "--data", str(tmp_path)]) == 1
    assert told in capsys.readouterr().err



def test_draws_of_a_small_kernel_differ_in_instructions_too() -> None:
    """Its decisions are few: what one drew, another may take with other instructions."""
    assert len(data()) == 24
