"""`tile-eg tune` on a machine with an NPU, which the stand-in is: candidates are measured as `tile-eg bench` does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.npu.cann import StandIn
from tests.npu.test_bench import KERNEL
from tests.spread.dask_cluster import DaskCluster
from tile_eg.cli.app import run
from tile_eg.tuning import session
from tile_eg.tuning.trial import Checked

Captured = pytest.CaptureFixture[str]
FEW = ["--launches", "3", "--warmup", "0"]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel whose candidates are taken to be right: the NPU's numbers are what is looked at."""
    monkeypatch.setattr(session, "checked", lambda trial: Checked("", 4, 4))
    (tmp_path / "scaled.tile").write_text(KERNEL)
    return tmp_path / "scaled.tile"


def entry(file: Path) -> dict[str, object]:
    (one,) = json.loads(Path(f"{file}.tuned.json").read_text())["kernels"]
    return one


@pytest.mark.slow
def test_candidates_are_launched_and_their_times_kept(npu: StandIn, kernel: Path, capsys: Captured) -> None:
    before = npu.calls("aclrtRecordEvent")
    assert run(["tune", str(kernel), "--budget", "2", *FEW]) == 0
    tried = entry(kernel)["tried"]
    assert tried == 2 and npu.calls("aclrtRecordEvent") - before == 2 * 3 * 2
    told = capsys.readouterr().out
    assert "right: measured" in told and "the search's own choice" in told and "as nothing was measured" not in told
    assert entry(kernel)["by"] == "measured" and entry(kernel)["microseconds"] > 0


@pytest.mark.slow
def test_what_the_npu_computes_is_compared_before_it_is_timed(npu: StandIn, kernel: Path, capsys: Captured) -> None:
    npu.null(True)
    assert run(["tune", str(kernel), "--budget", "1", *FEW]) == 2
    assert "note: left out: on the NPU: Y" in capsys.readouterr().err


@pytest.mark.slow
def test_an_npu_of_another_chip_is_an_error(npu: StandIn, kernel: Path, capsys: Captured) -> None:
    npu.soc("Ascend950PR_9579")
    kernel.write_text(KERNEL.replace("scaled", "scaled_by_three"))
    run(["tune", str(kernel), "--budget", "5", *FEW])
    assert "950" in capsys.readouterr().err and not Path(f"{kernel}.tuned.json").exists()


@pytest.mark.slow
def test_a_worker_with_an_npu_measures_what_others_have_checked(
    acl: StandIn, kernel: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    cluster = DaskCluster(tmp_path)
    try:
        monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
        cluster.worker()
        monkeypatch.setenv("ASCEND_HOME_PATH", str(acl.home))
        cluster.worker("--resources", "npu=1")
        monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
        cluster.wait_for(2)
        assert run(["tune", str(kernel), "--budget", "2", "--dask", cluster.address, *FEW]) == 0
        assert entry(kernel)["by"] == "measured"
    finally:
        cluster.close()


@pytest.mark.slow
def test_numbers_of_a_call_are_passed_to_what_is_timed(npu: StandIn, kernel: Path) -> None:
    body = "{\n  shared x: f32[16, 64]\n  x = X[0, 0]\n  x = x * lr\n  Y[0, 0] = x\n}\n"
    kernel.write_text(f"kernel step(X: f32[16, 64], lr: f32) -> Y: f32[16, 64] {body}")
    assert run(["tune", str(kernel), "--budget", "1", *FEW]) == 0
    assert entry(kernel)["by"] == "measured"
