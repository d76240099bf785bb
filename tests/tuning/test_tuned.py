"""What tuning found is used from then on, said to be, left aside by a switch, and refused where it does not fit any more."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tests.tuning.conftest import change, entry
from tile_eg.cli.app import run
from tile_eg.errors import TileError, TileWarning
from tile_eg.search.tuned_file import Entry, keep, path_of, read, text_of

pytestmark = pytest.mark.slow(but=2)

Captured = pytest.CaptureFixture[str]
SAID = "note: the schedule of scaled is the one that tuning found for 910B2"


def emitted(capsys: Captured, *command: str) -> tuple[str, str]:
    capsys.readouterr()
    assert run(["emit", *command]) == 0
    told = capsys.readouterr()
    return told.out, told.err


@pytest.mark.slow
def test_emit_takes_the_winner_and_says_so(tuned: Path, capsys: Captured) -> None:
    text, told = emitted(capsys, str(tuned))
    own, silent = emitted(capsys, str(tuned), "--untuned")
    assert text != own and told.startswith(SAID) and silent == ""
    assert emitted(capsys, str(tuned)) == (text, told), "once more, from the cache"
    assert emitted(capsys, str(tuned), "--no-cache") == (text, told)


@pytest.mark.slow
def test_at_other_sizes_and_on_another_chip_the_search_decides(tuned: Path, capsys: Captured) -> None:
    assert emitted(capsys, str(tuned), "--set", "M=96")[1] == ""
    assert emitted(capsys, str(tuned), "--chip", "910B4")[1] == ""
    assert emitted(capsys, str(tuned), "--exact-math")[1] == ""


@pytest.mark.parametrize("command", [["explain"], ["bench", "--device", "simulator"], ["alternatives", "-k", "1"]])
def test_commands_that_compile_take_it_too(tuned: Path, command: list[str], capsys: Captured) -> None:
    assert run([command[0], str(tuned), *command[1:]]) == 0
    told = capsys.readouterr()
    assert told.err.startswith(SAID) and f"{entry(tuned)['microseconds']:.3g} us" in told.out


def test_a_directory_is_built_of_it(tuned: Path, tmp_path: Path, capsys: Captured) -> None:
    text, _ = emitted(capsys, str(tuned))
    assert run(["build", str(tuned), "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err.startswith(SAID)
    inside = [line for line in text.splitlines()[1:] if line]
    written = [f.read_text() for f in (tmp_path / "out").iterdir() if f.is_file()]
    assert any(all(line in one for line in inside) for one in written)


def test_run_runs_it(tuned: Path, capsys: Captured) -> None:
    assert run(["run", str(tuned)]) == 0
    assert capsys.readouterr().err.startswith(SAID)


def test_calls_from_python_take_it_with_a_warning(tuned: Path) -> None:
    kernel = tile_eg.load(tuned)
    x = np.random.default_rng(0).standard_normal((64, 96), np.float32)
    with pytest.warns(TileWarning, match="the one that tuning found"):
        y = kernel(x)
    np.testing.assert_allclose(y, x * x.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)
    with pytest.warns(TileWarning):
        assert kernel.with_sizes(M=64, N=96).predicted_ms == pytest.approx(entry(tuned)["microseconds"] / 1000, rel=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        untuned = tile_eg.load(tuned, untuned=True).with_sizes(M=64, N=96).predicted_ms
    assert untuned < entry(tuned)["microseconds"] / 1000


def test_another_text_of_the_kernel_is_searched_and_told(tuned: Path, capsys: Captured) -> None:
    tuned.write_text(tuned.read_text().replace("x * s", "x + s"))
    assert "is not used: it was tuned for another text of scaled\nhelp: tune again" in emitted(capsys, str(tuned))[1]


def test_a_comment_changes_nothing(tuned: Path, capsys: Captured) -> None:
    tuned.write_text("# a comment\n" + tuned.read_text())
    assert emitted(capsys, str(tuned))[1].startswith(SAID)


def test_another_tile_eg_is_told_with_what_differs(tuned: Path, capsys: Captured) -> None:
    change(tuned, made_with={**entry(tuned)["made_with"], "version": "0.0.1"})
    assert "it was tuned with another tile_eg: version 0.0.1, now " in emitted(capsys, str(tuned))[1]


def test_other_rules_are_told(tuned: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "own.egg").write_text('(rewrite (Bin "mul" x y) (Bin "mul" y x) :ruleset algebra :name "swap" :law equal)\n')
    assert "with other rules (--rules)" in emitted(capsys, str(tuned), "--rules", str(tmp_path / "own.egg"))[1]


def test_a_program_that_is_no_candidate_is_an_error_with_a_way_out(tuned: Path, capsys: Captured) -> None:
    change(tuned, program="0" * 16)
    assert run(["emit", str(tuned)]) == 1
    told = capsys.readouterr().err
    assert "no candidate of scaled is the one that" in told and "--untuned" in told
    assert run(["emit", str(tuned), "--untuned"]) == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON: line 1, column 2"),
        ("[]", "it is no object with \"format\""),
        ('{"format": "tile_eg tuned kernels", "schema": 2}', '"schema" is 2, and this tile_eg reads 1'),
        ('{"format": "tile_eg tuned kernels", "schema": 1}', '"kernels" is no list'),
        ('{"format": "tile_eg tuned kernels", "schema": 1, "kernels": [{}]}', 'kernels[0] has no "kernel"'),
    ],
)
def test_a_broken_file_is_an_error_with_a_way_out(kernel: Path, text: str, told: str, capsys: Captured) -> None:
    path_of(str(kernel)).write_text(text)
    for command in ("emit", "tune"):
        assert run([command, str(kernel)]) == 1
        said = capsys.readouterr().err
        assert told in said and "--untuned" in said
    assert run(["emit", str(kernel), "--untuned"]) == 0


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"sizes": {"B": "many"}}, '"sizes" of kernels[0] gives B the value "many"'),
        ({"microseconds": "fast"}, '"microseconds" of kernels[0] is "fast"'),
        ({"winner": 1}, 'kernels[0] has "winner", which means nothing'),
    ],
)
def test_a_value_that_cannot_be_is_named(tuned: Path, values: dict[str, object], told: str) -> None:
    change(tuned, **values)
    with pytest.raises(TileError) as error:
        read(path_of(str(tuned)))
    assert told in str(error.value)


def test_what_is_written_is_read_again_and_stands_beside_others(tuned: Path, tmp_path: Path) -> None:
    (own,) = read(path_of(str(tuned)))
    path = tmp_path / "k.tuned.json"
    other = Entry(**{**own.__dict__, "chip": "910B4"})
    keep(path, own)
    keep(path, other)
    keep(path, Entry(**{**own.__dict__, "microseconds": 1.0}))
    assert [(e.chip, e.microseconds) for e in read(path)] == [("910B2", 1.0), ("910B4", own.microseconds)]
    assert path.read_text() == text_of(read(path)) and json.loads(path.read_text())["schema"] == 1


NUMBERED = """kernel step[M=64](X: f32[M, 64], lr: f32) -> Y: f32[M, 64] {
  grid b = ceildiv(M, 16)
  shared x: f32[16, 64]
  x = X[b*16, 0]
  x = x * lr
  Y[b*16, 0] = x
}
"""


@pytest.mark.parametrize("given", [{}, {"lr": 0.5}])
def test_what_was_found_serves_any_number_of_a_call(given: dict[str, float], tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "step.tile"
    file.write_text(NUMBERED)
    assert tile_eg.tune(tile_eg.load(file), budget=1, device="timeline", **given).best
    said = SAID.replace("scaled", "step")
    assert run(["run", str(file), "--set", "lr=0.25"]) == 0 and said in capsys.readouterr().err
    with pytest.warns(TileWarning, match="the one that tuning found"):
        np.testing.assert_array_equal(tile_eg.load(file)(np.ones((64, 64), np.float32), 3.0), 3)
    assert emitted(capsys, str(file), "--set", "lr=0.25")[1] == ""


def test_the_command_tunes_for_any_number_too(tmp_path: Path, all_right: None, capsys: Captured) -> None:
    file = tmp_path / "step.tile"
    file.write_text(NUMBERED)
    assert run(["tune", str(file), "--set", "lr=0.5", "--budget", "1", "--device", "timeline"]) == 0
    assert SAID.replace("scaled", "step") in emitted(capsys, str(file))[1]
