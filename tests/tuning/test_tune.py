"""`tile-eg tune`: candidates are checked, then timed; the best is kept at any time; a run goes on where one before it ended."""

from __future__ import annotations

import json
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.tuning.conftest import entry
from tile_eg.chips import load_chip
from tile_eg.cli import sources
from tile_eg.cli.app import run
from tile_eg.errors import TileError
from tile_eg.inputs import draw
from tile_eg.ir.reference_bounds import run_with_bounds
from tile_eg.search import search_options, tuned_file
from tile_eg.search.every import Every
from tile_eg.tuning import session
from tile_eg.tuning import trial as trial_module
from tile_eg.tuning.journal import Journal, Record
from tile_eg.tuning.space import Space, candidates
from tile_eg.tuning.trial import Checked, Trial, checked

pytestmark = pytest.mark.slow(but=2)

Captured = pytest.CaptureFixture[str]


def records(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(f"{file}.tuning.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_the_fastest_of_the_candidates_is_written_beside_the_kernel(kernel: Path, capsys: Captured) -> None:
    assert run(["tune", str(kernel), "--budget", "2"]) == 0
    out = capsys.readouterr().out
    assert "2 candidates tried, 2 right: predicted by the timeline" in out
    assert "nothing was measured on an NPU" in out
    found, tried = entry(kernel), records(kernel)
    best = min(tried, key=lambda r: r["microseconds"])
    assert (found["program"], found["tried"], found["by"]) == (best["program"], 2, "predicted by the timeline")
    assert found["microseconds"] == pytest.approx(best["microseconds"], abs=1e-4)


@pytest.mark.slow
def test_a_candidate_whose_text_is_wrong_is_found_by_the_check(kernel: Path) -> None:
    (one,) = candidates(Space(sources.read(kernel, {}), (), "910B2", search_options(), 1)).found
    unflagged = re.sub(r"AscendC::(Set|Wait)Flag<AscendC::HardEvent::MTE2_V>\(EVENT_ID0\);", "", one.source)
    assert "the simulator finds" in checked(Trial(replace(one, source=unflagged))).wrong
    added = one.source.replace("AscendC::Mul(", "AscendC::Add(")
    assert "on inputs 'uniform': Y" in checked(Trial(replace(one, source=added))).wrong


def test_some_tiles_are_compared_where_there_are_more(kernel: Path) -> None:
    (one,) = candidates(Space(sources.read(kernel, {"M": 160}), (), "910B2", search_options(), 1)).found
    found = checked(Trial(one, blocks=2))
    assert (found.wrong, found.compared, found.tiles) == ("", 2, 10)


def test_what_is_wrong_is_left_out_and_told(kernel: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def first_is_wrong(trial: Trial) -> Checked:
        seen.append(trial.candidate.digest)
        return Checked("Y[0, 0] is off" if len(seen) == 1 else "", 4, 4)

    monkeypatch.setattr(session, "checked", first_is_wrong)
    assert run(["tune", str(kernel), "--budget", "2"]) == 0
    told = capsys.readouterr()
    assert "2 candidates tried, 1 right, 1 left out" in told.out and "note: left out: Y[0, 0] is off" in told.err
    assert entry(kernel)["program"] == seen[1]


def test_nothing_is_kept_where_nothing_is_right(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "checked", lambda trial: Checked("off", 1, 1))
    assert run(["tune", str(kernel), "--budget", "2"]) == 2
    assert not Path(f"{kernel}.tuned.json").exists()


def test_a_run_goes_on_where_one_before_it_ended(
    kernel: Path, all_right: None, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["tune", str(kernel), "--budget", "2"])
    done, again = {r["program"] for r in records(kernel)}, list[str]()
    monkeypatch.setattr(session, "checked", lambda t: again.append(t.candidate.digest) or Checked("", 1, 1))
    with Path(f"{kernel}.tuning.jsonl").open("a") as file:
        file.write('{"task": "cut off')
    assert run(["tune", str(kernel), "--budget", "3", "--resume"]) == 0
    assert len(again) == 1 and not done & set(again)
    assert "3 candidates tried, 3 right" in capsys.readouterr().out
    assert run(["tune", str(kernel), "--budget", "3"]) == 0 and len(again) == 4


def test_two_runs_at_once_lose_nothing_of_each_other(tmp_path: Path, tuned: Path) -> None:
    """Each reads the file, adds its own entry, and writes: one behind the other."""
    path = Path(f"{tuned}.tuned.json")
    (one,) = tuned_file.read(path)
    own = [replace(one, kernel=f"kernel{n}", source=str(n)) for n in range(12)]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda e: tuned_file.keep(path, e), own))
    assert {e.kernel for e in tuned_file.read(path)} == {one.kernel, *(e.kernel for e in own)}


def test_a_record_follows_those_that_another_process_wrote_meanwhile(tmp_path: Path) -> None:
    file = str(tmp_path / "k.tile")
    record = Record("p", (("B", 16),), "", 1.0, 2.0)
    first, second = Journal(file, "first", False), Journal(file, "second", False)
    first.add(record)
    journal = Path(f"{file}.tuning.jsonl")
    journal.write_text(f'{journal.read_text()}{{"task": "killed, its last line cut sh')
    Journal(file, "second", False)  # begins anew, and writes the file again
    second.add(record)
    first.add(replace(record, program="q"))
    first.close()
    second.close()
    assert sorted(Journal(file, "first", True).known) == ["p", "q"] and list(Journal(file, "second", True).known) == ["p"]


def test_ctrl_c_keeps_the_best_so_far(
    kernel: Path, all_right: None, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = session.checked
    count = iter(range(10))

    def interrupted(trial: Trial) -> Checked:
        if next(count) == 2:
            raise KeyboardInterrupt
        return one_by_one(trial)

    monkeypatch.setattr(session, "checked", interrupted)
    assert run(["tune", str(kernel), "--budget", "5"]) == 130
    assert "interrupted: the best so far is kept" in capsys.readouterr().out
    assert entry(kernel)["tried"] == 2 and len(records(kernel)) == 2


def test_ctrl_c_before_the_first_candidate_leaves_nothing(
    kernel: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(trial: Trial) -> Checked:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "checked", interrupted)
    assert run(["tune", str(kernel)]) == 130
    assert "nothing was timed, and nothing is kept" in capsys.readouterr().out
    assert [f.name for f in kernel.parent.iterdir()] == [kernel.name]


@pytest.mark.long
def test_open_sizes_are_tried_at_several_numbers(kernel: Path, all_right: None, capsys: Captured) -> None:
    kernel.write_text(kernel.read_text().replace("N=96]", "N=96, B=auto]").replace("16", "B"))
    assert run(["tune", str(kernel), "--budget", "20"]) == 0
    assert len({json.dumps(r["sizes"]) for r in records(kernel)}) > 1
    found = entry(kernel)
    assert found["open"] == ["B"] and set(found["sizes"]) == {"B"}
    capsys.readouterr()
    assert run(["emit", str(kernel)]) == 0
    assert "the one that tuning found" in capsys.readouterr().err


def test_one_candidate_is_said_to_be_the_only_one(kernel: Path, all_right: None, capsys: Captured) -> None:
    assert run(["tune", str(kernel), "--effort", "none"]) == 0
    assert "scaled has one candidate only: there is nothing to choose" in capsys.readouterr().out


@pytest.mark.long
def test_processes_find_what_one_finds(kernel: Path, tuned: Path) -> None:
    assert run(["tune", str(kernel), "--budget", "3", "--workers", "2"]) == 0
    assert [r["program"] for r in records(kernel)] and {r["program"] for r in records(kernel)} == {
        r["program"] for r in records(tuned)
    }


def test_the_candidates_are_the_same_each_time(kernel: Path) -> None:
    def found() -> list[str]:
        return [f.digest for f in Every(sources.read(kernel, {}), load_chip("910B2"), search_options(effort="full"))]

    assert found() == found() and len(set(found())) > 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--budget", "0"], "a budget of 0: at least one candidate has to be tried"),
        (["--chip", "911"], "unknown chip '911'"),
        (["--device", "gpu"], "there is no device 'gpu' to tune on\nhelp: one of npu, simulator, timeline"),
        (["--workers", "0"], "0 workers: at least one"),
        (["--sample", "-1"], "-1 tiles to compare: at least 0"),
        (["--launches", "1"], "1 launches: at least 3"),
        (["--dask", "tcp://127.0.0.1:9"], "there is no Dask scheduler at tcp://127.0.0.1:9"),
    ],
)
def test_what_cannot_be_is_told_before_the_work(
    kernel: Path, given: list[str], told: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--dask" in given:
        pytest.importorskip("distributed")
        monkeypatch.setattr("tile_eg.spread.cluster.ANSWER", 0.5)
    assert run(["tune", str(kernel), *given]) == 1
    assert told in capsys.readouterr().err


def test_an_npu_that_is_not_there_is_told(kernel: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
    assert run(["tune", str(kernel), "--device", "npu"]) == 1
    assert "there is no CANN on this machine" in capsys.readouterr().err


def test_what_its_author_decided_is_not_tuned(capsys: Captured) -> None:
    assert run(["tune", "examples/expert/linear_relu.py"]) == 1
    assert "kept as it is written: there is nothing to tune\nhelp: --schedule search" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told_before_the_work(
    kernel: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refused)
    monkeypatch.setattr(session, "checked", lambda trial: pytest.fail("work was done"))
    assert run(["tune", str(kernel)]) == 1
    assert "cannot write" in (told := capsys.readouterr().err) and "Read-only file system" in told


def test_a_kernel_without_a_file_is_told() -> None:
    from tile_eg.frontend.text import load_text
    from tile_eg.tuning import Asked, Watch, tune

    held = load_text(Path("examples/softmax.tile").read_text(), "<text>").instantiate({})
    with pytest.raises(TileError, match="softmax stands in no file"):
        tune(held, "910B2", search_options(), Asked(), Watch())


def test_the_blocks_that_have_some_tiles_are_those_that_run() -> None:
    """A persistent kernel: its 24 blocks take 64 tiles in bands; the numbers of eight tiles are computed by no other blocks."""
    file, sizes = Path("examples/gemm.tile"), {"M": 512, "N": 512, "K": 64, "BM": 64, "BN": 64}
    kernel = sources.read(file, sizes)
    found = candidates(Space(kernel, (), "910B2", search_options(), 12)).found
    persistent = next(c for c in found if "tasks " in c.program)
    trial = Trial(persistent, blocks=8)
    assert trial.tiles is not None and len(trial.tiles) == 8 and 0 < len(trial.sampled) <= 8
    drawn = trial.drawn[0]
    run = trial.planned.run(drawn.arrays, blocks=trial.sampled)
    assert not trial_module._not_there(run, drawn) and run.not_computed["C"].any()
    assert checked(trial).wrong == ""
    others = tuple({*range(24)} - {*trial.sampled})[:1]
    assert trial_module._not_there(trial.planned.run(drawn.arrays, blocks=others), drawn)


def test_what_some_tiles_mean_is_what_all_mean_there(kernel: Path) -> None:
    held = sources.read(kernel, {"M": 160})
    arrays = draw([t for t in held.tensors if not t.output], "uniform", 0)
    some, every = run_with_bounds(held, arrays, (0, 9))["Y"], run_with_bounds(held, arrays)["Y"]
    assert [i for i in range(160) if np.isfinite(some.allowed[i]).all()] == [*range(16), *range(144, 160)]
    there = np.isfinite(some.allowed)
    assert (some.value[there] == every.value[there]).all() and (some.allowed[there] == every.allowed[there]).all()
