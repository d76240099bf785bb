"""`tile-eg bench` and `tile-eg doctor` on a machine with an NPU, which the stand-in is, and on one without."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from benchmarks.validate.own import learn, own_rows, shown
from tests.npu.cann import StandIn
from tile_eg.cli.app import run
from tile_eg.cli.bench import COLUMNS
from tile_eg.cost_models.table import Table
from tile_eg.errors import TileError
from tile_eg.npu.bench import kept

KERNEL = """\
kernel scaled[M=64](X: f32[M, 64]) -> Y: f32[M, 64] {
  grid b = ceildiv(M, 16)
  shared x: f32[16, 64]
  x = X[b*16, 0]
  x = x * 3
  Y[b*16, 0] = x
}
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "scaled.tile").write_text(KERNEL)
    return tmp_path / "scaled.tile"


def test_the_csv_has_the_columns_of_published_measurements_and_finite_times(
    npu: StandIn, kernel: Path, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "times.csv"
    command = ["bench", str(kernel), "--shapes", "M=64", "--shapes", "M=96", "--csv", str(out)]
    assert run([*command, "--launches", "4", "--warmup", "1", "--check"]) == 0
    assert capsys.readouterr().out.count("good") == 2
    rows = list(csv.DictReader(out.open()))
    assert tuple(rows[0]) == COLUMNS and [r["shape"] for r in rows] == ["M64", "M96"]
    assert all(0 < float(r["value"]) < 1e9 and r["metric"] == "task_time" for r in rows)


def test_measured_rows_are_taken_by_validate_and_by_a_table_cost_model(
    npu: StandIn, kernel: Path, tmp_path: Path, capsys: Captured
) -> None:
    out, model = tmp_path / "times.csv", tmp_path / "model.json"
    assert run(["bench", str(kernel), "--csv", str(out), "--launches", "3", "--warmup", "0"]) == 0
    rows = own_rows(out)
    assert "mean error of 1 rows" in shown(rows)
    learn(rows, model)
    table = Table(rows[0].planned.chip)
    table.load(model)
    assert table.predict([rows[0].planned.program]) == pytest.approx([rows[0].measured])


def test_without_an_npu_the_times_are_predicted_and_that_is_said(kernel: Path, tmp_path: Path, capsys: Captured) -> None:
    assert run(["bench", str(kernel), "--device", "simulator", "--csv", str(tmp_path / "t.csv")]) == 0
    assert "predicted by the timeline, not measured" in capsys.readouterr().err
    assert next(csv.DictReader((tmp_path / "t.csv").open()))["metric"] == "predicted_time"
    assert own_rows(tmp_path / "t.csv") == []


def test_outliers_are_left_out_and_what_is_no_time_is_refused() -> None:
    assert kept([10.0, 11.0, 10.5, 10.2, 900.0]) == (10.0, 11.0, 10.5, 10.2)
    assert len(kept([1.0, 100.0, 10000.0])) == 2
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(TileError, match="which is no time"):
            kept([10.0, wrong])


def test_an_event_that_fails_is_named(npu: StandIn, kernel: Path, capsys: Captured) -> None:
    npu.fail("aclrtEventElapsedTime", 107006)
    assert run(["bench", str(kernel), "--launches", "3", "--warmup", "0"]) == 1
    assert "read the time between two events: ACL gives 107006" in capsys.readouterr().err


def test_doctor_finds_the_chip_through_acl(npu: StandIn, capsys: Captured) -> None:
    assert run(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = {f["what"]: f for f in told["findings"]}
    assert found["CANN"]["detail"].startswith("8.5 at ") and found["chip"]["detail"] == "Ascend910B2 (910B2), 2 devices"
    assert "the stand-in for bisheng" in found["bisheng"]["detail"] and told["runs"]["npu"]


def test_doctor_says_what_is_missing_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "missing  CANN" in out and "source /usr/local/Ascend/cann/set_env.sh" in out
    assert "on an NPU               no: CANN, chip missing" in out


def test_doctor_says_what_an_older_cann_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    (tmp_path / "ascend_toolkit_install.info").write_text("version=8.3.RC1\n")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    run(["doctor"])
    out = capsys.readouterr().out
    assert f"8.3 at {tmp_path}; without .asc files, which are there from 8.5 on" in out
    assert "missing  bisheng" in out and "get it: it is in CANN's toolkit package" in out
