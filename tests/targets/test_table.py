"""The table of targets: what it prints, what it keeps, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.experts.gemm import expert, gemm
from benchmarks.targets import __main__ as targets
from benchmarks.targets.bounds import Bound
from benchmarks.targets.rows import FAMILIES, Row
from tile_eg.chips import Chip, load_chip
from tile_eg.report.cost import within

pytestmark = pytest.mark.slow(but=1)

SIZES = {"M": 256, "N": 256, "K": 128}


def row(chip: Chip, name: str, bound: float, cores: int = 24, faster: float | None = None) -> Row:
    best = {"128 x 256": lambda: gemm(expert(256, 256, 128, cores))}
    return Row("gemm", name, "gemm", SIZES, chip, Bound({"cube": bound}), best, 1.05, faster)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(targets, "KEPT", tmp_path / "results" / "targets.json")
    monkeypatch.setattr(
        targets, "FAMILIES", {"easy": lambda chip: [row(chip, "easy", 100.0, 1)], "hard": lambda chip: [row(chip, "hard", 1.0)]}
    )
    yield tmp_path / "results" / "targets.json"


@pytest.mark.slow
def test_it_ends_well_where_every_target_holds(kept: Path, capsys: pytest.CaptureFixture) -> None:
    assert targets.main(["easy", "--given"]) == 0
    assert "1 of 1 rows reach their target" in capsys.readouterr().out


def test_it_says_which_target_is_missed(kept: Path, capsys: pytest.CaptureFixture) -> None:
    assert targets.main(["hard", "--given"]) == 1
    assert "more than 5% from the bound" in capsys.readouterr().out


def test_what_is_assumed_of_the_chip_stands_beside_the_time(kept: Path, capsys: pytest.CaptureFixture) -> None:
    targets.main(["easy", "--given"])
    found = json.loads(kept.read_text())["910B2"]["gemm easy"]
    low, high = found["interval"]
    assert low <= found["ours"] <= high and low < high
    assert within((low, high)) in capsys.readouterr().out


def test_a_run_of_one_family_keeps_the_others(kept: Path) -> None:
    targets.main(["easy", "--given"])
    targets.main(["hard", "--given"])
    assert json.loads(kept.read_text())["910B2"].keys() == {"gemm easy", "gemm hard"}


def test_a_page_gets_the_table_where_it_asks_for_it(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- targets -->\n```text\nold\n```\nbehind\n")
    targets.main(["easy", "--given", "--page", str(page)])
    assert page.read_text() == f"before\n<!-- targets -->\n```text\n{capsys.readouterr().out}```\nbehind\n"


def test_a_page_keeps_the_rows_of_families_measured_before(kept: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- targets -->\n```text\n```\n")
    targets.main(["hard", "--given"])
    targets.main(["easy", "--given", "--page", str(page)])
    assert "1 of 2 rows reach their target" in page.read_text()


def test_sources_with_open_tiles_can_be_left_out(kept: Path) -> None:
    targets.main(["easy", "--given"])
    assert json.loads(kept.read_text())["910B2"]["gemm easy"]["open"] is None


def test_an_unknown_family_is_named(kept: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        targets.main(["gem"])
    assert "no family is called gem: there are easy, hard" in capsys.readouterr().err


def test_a_chip_that_there_is_no_table_for_is_a_message(kept: Path, capsys: pytest.CaptureFixture) -> None:
    assert targets.main(["easy", "--chip", "910B9"]) == 1
    assert "910B9" in capsys.readouterr().err


@pytest.mark.long
def test_open_tiles_may_reach_what_the_given_ones_do_not() -> None:
    tight = replace(row(load_chip(), "tight", 100.0, 1), sizes=SIZES | {"BM": 512, "BN": 16, "BK": 16})
    assert tight.missed() == []
    assert replace(tight, leave_open=False).missed() == ["slower than the expert"]


def test_a_literal_schedule_that_is_near_is_a_target_missed() -> None:
    assert row(load_chip(), "near", 100.0, 1, faster=50).missed() == ["not 50 times as fast as literal"]


@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_every_family_has_its_rows_on_a_chip_that_runs_some_of_its_kernels(chip: str) -> None:
    assert all([*rows(load_chip(chip))] for rows in FAMILIES.values())
