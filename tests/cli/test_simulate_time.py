"""`tile-eg simulate` says how long each launch would take, on text, in JSON and as a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.simulator.asc import MAIN, QUEUES, SPEC, file_of
from tile_eg.cli.app import run

pytestmark = pytest.mark.slow(but=3)


def simulated(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert run(["simulate", *command]) == 0
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, Any]:
    return json.loads(simulated(capsys, *command, "--json"))


@pytest.mark.slow
def test_a_launch_of_a_main_has_a_time_its_pipes_and_what_bounds_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = simulated(capsys, str(file_of(tmp_path, MAIN).path))
    assert "doubled: predicted " in shown and "2 blocks; bound by " in shown
    assert [line.split()[:2] for line in shown.splitlines() if line.startswith("  AIV")]


def test_a_missing_file_is_told_with_the_ascend_c_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file_of(tmp_path, MAIN)
    (tmp_path / "other.tile").touch()
    assert run(["simulate", str(tmp_path / "gone.asc")]) == 1
    told = capsys.readouterr().err
    assert ".asc" in told.splitlines()[-1] and "other.tile" not in told


def test_a_kernel_without_its_include_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(line for line in QUEUES.splitlines() if not line.startswith("#include"))
    (tmp_path / "spec.toml").write_text(SPEC)
    assert run(["simulate", str(file_of(tmp_path, text).path), "--args", str(tmp_path / "spec.toml")]) == 1
    assert "does not include kernel_operator.h" in capsys.readouterr().err


def test_one_finding_is_counted_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    race = "\n".join(line for line in MAIN.splitlines() if "MTE2_V" not in line)
    assert run(["simulate", str(file_of(tmp_path, race).path)]) == 1
    assert capsys.readouterr().out.rstrip().endswith("BAD, 1 finding")


def test_the_chip_decides_the_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(file_of(tmp_path, MAIN).path)
    slow, quick = (data(capsys, path, "--chip", chip)["launches"][0]["block_cycles"] / mhz
                   for chip, mhz in (("910B4", 1500), ("910B1", 1850)))  # fmt: skip
    assert slow > quick


def test_every_launch_of_a_main_is_timed_after_the_one_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start, end = MAIN.rindex("\n", 0, MAIN.index("<<<")), MAIN.index(";", MAIN.index("<<<")) + 1
    twice = MAIN[:end] + MAIN[start:end] + MAIN[end:]
    first, second = data(capsys, str(file_of(tmp_path, twice).path))["launches"]
    assert second["start_microseconds"] == pytest.approx(first["microseconds"])
    assert second["line"] > first["line"]


def test_a_spec_names_the_kernel_of_its_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    launches = data(capsys, str(file_of(tmp_path, QUEUES).path), "--args", str(spec))["launches"]
    assert [launch["kernel"] for launch in launches] == ["scaled"] and launches[0]["blocks"] == 2


def test_json_holds_the_timeline_with_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spans = data(capsys, str(file_of(tmp_path, MAIN).path))["launches"][0]["timeline"]
    copy = MAIN.splitlines().index("    AscendC::DataCopy(a, gx, LENGTH);") + 1
    load = next(s for s in spans if s["line"] == copy)
    assert (load["core"], load["pipe"], load["name"]) == ("AIV", "MTE2", "DataCopy")
    assert load["us"] > 0 and load["complete_us"] >= load["start_us"] + load["us"]


def test_queues_order_pipes_in_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    spans = data(capsys, str(file_of(tmp_path, QUEUES).path), "--args", str(spec))["launches"][0]["timeline"]
    first = {pipe: next(s for s in spans if s["pipe"] == pipe) for pipe in ("MTE2", "V", "MTE3")}
    assert first["MTE2"]["complete_us"] <= first["V"]["start_us"]
    assert first["V"]["complete_us"] <= first["MTE3"]["start_us"]


def test_the_trace_has_instructions_arrows_and_bytes_live(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, spec = tmp_path / "out.json", tmp_path / "spec.toml"
    spec.write_text(SPEC)
    simulated(capsys, str(file_of(tmp_path, QUEUES).path), "--args", str(spec), "--trace", str(out))
    assert {"M", "X", "s", "f", "C"} <= {e["ph"] for e in json.loads(out.read_text())["traceEvents"]}


def test_time_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data(capsys, str(file_of(tmp_path, MAIN).path), "--no-time")["launches"] == []
