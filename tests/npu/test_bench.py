"""`tile-eg bench` and `tile-eg doctor` on a machine with an NPU, which the stand-in is, and on one without."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path

import pytest

from benchmarks.validate.own import learn, own_rows, shown
from tests.npu.cann import StandIn
from tests.npu.kernels import doubled, matrix
from tile_eg.cli.app import run
from tile_eg.cli.bench import COLUMNS
from tile_eg.cli.benched import benched
from tile_eg.cost_models.table import Table
from tile_eg.errors import TileError
from tile_eg.jit.measured import ESTIMATED
from tile_eg.npu.arrays import array
from tile_eg.npu.bench import kept
from tile_eg.npu.launcher import Launcher
from tile_eg.profiler import do_bench
from tile_eg.search import search_options

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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_a_row_says_with_which_options_it_was_made(kernel: Path, tmp_path: Path) -> None:
    given = ["--effort", "none", "--exact-math", "--without", "past-l2", "--without", "shuffle-k", "--chip", "910B3"]
    assert run(["bench", str(kernel), "--device", "simulator", "--csv", str(tmp_path / "t.csv"), *given]) == 0
    again = benched(next(csv.DictReader((tmp_path / "t.csv").open()))["source"])
    assert again.file == kernel and again.chip == "910B3"
    assert again.search == search_options(effort="none", exact_math=True, without=("past-l2", "shuffle-k"))


@pytest.mark.parametrize("source", ["a page", "tile-eg bench a.tile --swift; tile_eg 1"])
def test_a_row_with_no_command_that_can_be_read_is_refused(source: str) -> None:
    with pytest.raises(TileError, match="no command of|--swift"):
        benched(source)


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


@pytest.mark.slow
def test_an_event_that_fails_is_named(npu: StandIn, kernel: Path, capsys: Captured) -> None:
    npu.fail("aclrtEventElapsedTime", 107006)
    assert run(["bench", str(kernel), "--launches", "3", "--warmup", "0"]) == 1
    assert "read the time between two events: ACL gives 107006" in capsys.readouterr().err


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("step", ["aclrtCreateEventWithFlag", "aclrtRecordEvent", "aclrtEventElapsedTime"])
def test_a_measurement_that_fails_gives_its_events_back(npu: StandIn, kernel: Path, step: str) -> None:
    made, given = npu.calls("aclrtCreateEventWithFlag"), npu.calls("aclrtDestroyEvent")
    npu.fail(step, 107006)
    assert run(["bench", str(kernel), "--launches", "3", "--warmup", "0"]) == 1
    failed = step == "aclrtCreateEventWithFlag"
    assert npu.calls("aclrtCreateEventWithFlag") - made - failed == npu.calls("aclrtDestroyEvent") - given


@pytest.mark.slow
def test_do_bench_measures_what_runs_on_the_device(npu: StandIn) -> None:
    x, before = array(matrix(64, 96)), npu.calls("aclrtLaunchKernelWithHostArgs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = do_bench(lambda: doubled()(x), _n_warmup=2, _n_repeat=3)
    assert npu.calls("aclrtLaunchKernelWithHostArgs") - before == 1 + 2 + 3
    assert isinstance(found, float) and found != doubled().predicted_ms


@pytest.mark.slow
def test_do_bench_calls_as_often_as_fills_the_time(npu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    x, before = array(matrix(64, 96)), npu.calls("aclrtLaunchKernelWithHostArgs")
    monkeypatch.setattr(Launcher, "elapsed", lambda *_: 2000.0)
    assert do_bench(lambda: doubled()(x), warmup=8, rep=20) == 2.0
    assert npu.calls("aclrtLaunchKernelWithHostArgs") - before == 1 + ESTIMATED + 4 + 10


def test_do_bench_gives_the_time_that_is_asked_for(npu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    x, times = array(matrix(64, 96)), {}

    def bench(**asked: object) -> object:
        times["left"] = [1000.0, 2000.0, 6000.0]
        return do_bench(lambda: doubled()(x), _n_warmup=1, _n_repeat=3, **asked)

    monkeypatch.setattr(Launcher, "elapsed", lambda *_: times["left"].pop(0))
    assert [bench(return_mode=mode) for mode in ("mean", "median", "min", "max")] == [3.0, 2.0, 1.0, 6.0]
    assert bench(quantiles=[0.5]) == 2.0 and bench(quantiles=[0.0, 1.0]) == [1.0, 6.0]


def test_do_bench_refuses_a_call_that_is_half_on_the_device(npu: StandIn) -> None:
    x = matrix(64, 96)
    on_device = array(x)
    with pytest.raises(TileError, match="the kernels of this call run on npu:0 and the simulator"):
        do_bench(lambda: (doubled()(on_device), doubled()(x)))


def test_a_profiler_measures_inputs_that_lie_on_the_device(npu: StandIn) -> None:
    before = npu.calls("aclrtLaunchKernelWithHostArgs")
    assert doubled().get_profiler().do_bench(input_tensors=[array(matrix(64, 96))], n_repeat=2) > 0
    assert npu.calls("aclrtLaunchKernelWithHostArgs") - before == 1 + 1 + 2


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
