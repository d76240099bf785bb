"""A user's mistake gives exit code 1 and a message to act on, never a traceback; a fault of ours gives 2 and says so."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tile_eg.cli.app import run

GEMM = str(Path(__file__).parents[2] / "examples" / "gemm.tile")


class Outcome:
    """One command line: its exit code and what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> None:
        self.code = run([str(a) for a in arguments])
        self.out, self.error = capsys.readouterr()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The message of a command line that the user has to mend."""
    outcome = Outcome(capsys, *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.error.startswith("error: ")
    assert "Traceback" not in outcome.error
    return outcome.error


@pytest.mark.parametrize("command", ["check", "emit", "run", "explain"])
def test_a_missing_file_is_named_with_its_neighbours(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gemm.tile").write_text("")
    said = refused(capsys, command, tmp_path / "gem.tile")
    assert "there is no file" in said
    assert "gemm.tile" in said.splitlines()[-1]


def test_of_many_neighbours_some_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(40):
        (tmp_path / f"k{n:02}.tile").write_text("")
    said = refused(capsys, "check", tmp_path / "gem.tile")
    assert "k00.tile, k01.tile" in said
    assert said.rstrip().endswith("k11.tile and 28 more")


def test_a_kernel_that_is_given_to_simulate_is_sent_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"`tile-eg run {GEMM}` runs a kernel" in refused(capsys, "simulate", GEMM)


@pytest.mark.slow
def test_an_array_that_does_not_fit_is_shown_with_its_tensor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", np.ones((16, 16)))
    said = refused(capsys, "run", GEMM, "--set", "N=16", "--input", f"A={tmp_path / 'a.npy'}")
    assert "elements of type float64, not float16" in said
    assert "(A: f16[M, K]" in said
    assert "^" in said


def test_a_folder_is_not_a_kernel_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a folder" in refused(capsys, "check", tmp_path)


def test_a_file_of_another_kind_is_refused_with_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("kernel")
    assert ".tile (tile text)" in refused(capsys, "check", tmp_path / "a.txt")


def test_a_file_that_is_no_utf8_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tile").write_bytes(b"kernel \xff\xfe")
    assert "not UTF-8" in refused(capsys, "check", tmp_path / "a.tile")


@pytest.mark.parametrize("text", ["", "   \n\n", "# only a comment\n"])
def test_a_file_without_a_kernel_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tile").write_text(text)
    assert "kernel" in refused(capsys, "check", tmp_path / "a.tile")


def test_a_syntax_error_shows_its_line_and_a_caret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tile").write_text(Path(GEMM).read_text().replace("c += a @ b", "c += a @ @ b"))
    said = refused(capsys, "check", tmp_path / "a.tile")
    assert "c += a @ @ b" in said
    assert "^" in said.splitlines()[3]


def test_an_unknown_name_is_shown_in_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tile").write_text(Path(GEMM).read_text().replace("c += a @ b", "c += a @ bb"))
    said = refused(capsys, "check", tmp_path / "a.tile")
    assert "bb" in said.splitlines()[0]
    assert "c += a @ bb" in said


@pytest.mark.slow(but=8)
@pytest.mark.parametrize(
    ("sizes", "words"),
    [("X=3", "X"), ("M=big", "'big' is no number"), ("M=0", "at least 1"), ("M=-8", "at least 1"), ("M", "NAME=VALUE")],
)
@pytest.mark.parametrize("command", ["check", "emit", "run", "explain"])
def test_a_size_that_does_not_fit_is_refused(command: str, sizes: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in refused(capsys, command, GEMM, "--set", sizes)


@pytest.mark.parametrize("command", ["emit", "run", "explain"])
def test_an_unknown_chip_is_refused_with_the_known_ones(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, command, GEMM, "--chip", "910Z")
    assert "910Z" in said
    assert "910B2" in said


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "tile-eg --help" in refused(capsys, "compile", GEMM)


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "tile-eg emit --help" in refused(capsys, "emit", GEMM, "--fast")


def test_a_missing_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "FILE" in refused(capsys, "emit")


def test_two_things_to_emit_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "one of them" in refused(capsys, "emit", GEMM, "--host", "--program")
    assert "one of them" in refused(capsys, "emit", GEMM, "--host", "--spec")


def test_a_fault_of_ours_has_exit_code_2_and_asks_for_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILE_EG_DEBUG", raising=False)
    monkeypatch.setattr("tile_eg.cli.sources.read", lambda *_: 1 / 0)
    outcome = Outcome(capsys, "check", GEMM)
    assert outcome.code == 2
    assert "ZeroDivisionError" in outcome.error
    assert "report" in outcome.error
    assert "Traceback" not in outcome.error


def test_a_fault_of_ours_shows_where_it_happened_on_demand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILE_EG_DEBUG", "1")
    monkeypatch.setattr("tile_eg.cli.sources.read", lambda *_: 1 / 0)
    assert "Traceback" in Outcome(capsys, "check", GEMM).error


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_mistake_of_the_users() -> None:
    command = [sys.executable, "-m", "tile_eg", "emit", GEMM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (130, "")


@pytest.mark.parametrize(("code", "said"), [(errno.ENOSPC, "error: the text cannot be written"), (errno.EPIPE, "")])
def test_what_is_still_held_back_is_written_before_the_command_ends(
    code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(sys.stdout, "flush", fail)
        patched.setattr("tile_eg.cli.console.leave_unread", lambda: None)
        patched.setattr("tile_eg.cli.app.leave_unread", lambda: None)
        assert run(["chips"]) == (1 if said else 130)
    error = capsys.readouterr().err
    assert said in error and bool(said) == bool(error)


@pytest.mark.parametrize("option", ["--reads", "--writes"])
def test_a_folder_that_is_none_is_told(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "simulate", tmp_path / "any.asc", option, tmp_path / "missing")
    assert option in said and "does not exist" in said


def test_a_mark_that_an_editor_puts_in_front_is_no_part_of_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.tile").write_text(Path(GEMM).read_text(), encoding="utf-8-sig")
    assert Outcome(capsys, "check", tmp_path / "k.tile").code == 0


def test_a_name_of_other_letters_is_told_which_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.tile").write_text("kernel größe(A: f32[64]) -> B: f32[64] {}", encoding="utf-8")
    assert "the letters a to z and A to Z" in refused(capsys, "check", tmp_path / "k.tile")


def test_a_character_that_nobody_sees_is_named_by_its_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.tile").write_text(Path(GEMM).read_text() + "\0")
    assert "the invisible character U+0000" in refused(capsys, "check", tmp_path / "k.tile")


@pytest.mark.parametrize(
    ("text", "said"),
    [("def f(:\n", "this is not Python: invalid syntax"), ("import sys\nsys.exit(3)\n", "this raised SystemExit: 3\n")],
)
def test_a_module_that_does_not_get_to_its_kernel_is_refused_at_its_line(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.py").write_text(text)
    assert said in refused(capsys, "check", tmp_path / "k.py")


def test_a_tile_that_no_memory_holds_is_refused_at_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "emit", GEMM, "--set", f"BK={10**30}")
    assert "the tile `a` needs" in said
    assert "gemm.tile:4" in said


def test_a_chain_that_is_too_long_to_follow_is_the_authors_to_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sum_of_many = " + ".join(["a"] * 2000)
    (tmp_path / "k.tile").write_text(
        "kernel k(A: f16[16, 16]) -> C: f16[16, 16] {\n  grid bx = 1\n  shared a: f16[16, 16]\n  a = A[0, 0]\n"
        f"  C[0, 0] = {sum_of_many}\n}}\n"
    )
    assert "a longer chain of operations" in refused(capsys, "check", tmp_path / "k.tile")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", GEMM, "--chip", ""), "unknown chip ''"),
        (("run", GEMM, "--memory", "nan"), "--memory nan: it is a number of GiB"),
        (("emit", GEMM, "--cost-model", "roofline@none"), "'none' is no file of the roofline's"),
        (("emit", GEMM, "--extractor", "choices=none"), "cannot read choices from 'none': No such file or directory"),
        (("explain", GEMM, "--schedule", "2"), "--schedule 2: here it is search"),
        (("explain", GEMM, "--at", "M=64", "--profile"), "--at shows times alone"),
        (("explain", GEMM, "--at", "M=64", "--set", "M=32"), "M: either one size (--set) or several"),
        (("diff", GEMM, "2", "2"), "2 and 2 are one schedule"),
        (("diff", GEMM, "--columns"), "--columns shows two schedules by their numbers"),
        (("diff", GEMM, "1", "2", "--text"), "two schedules are always shown with their texts"),
        (("diff", GEMM, "1", "2", "--where", "--columns"), "--where runs both and shows no texts"),
        (("audit", GEMM, "--extractor", "exact"), "No such option: --extractor"),
        (("dataset", GEMM, GEMM, "-o", "none", "-n", "2"), "two kernels of the dataset are called 'gemm'"),
    ],
)
def test_what_would_have_no_effect_is_refused(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, *arguments)


@pytest.mark.slow
def test_what_is_printed_to_a_closed_stream_goes_nowhere() -> None:
    command = f'"{sys.executable}" -m tile_eg --version'
    for stream in (">&-", "2>&-"):
        done = subprocess.run(f"{command} {stream}", shell=True, capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False)
