"""What a user types is taken or refused by name; a refusal says what would be taken."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tile_eg.cli import options
from tile_eg.cli.app import app, run
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Tensor
from tile_eg.ops.types import BF16, F16, F32

A, B, C = Tensor("A", F16, (4, 2), False), Tensor("B", BF16, (3,), False), Tensor("C", F32, (4,), True)


def test_of_the_commands_only_the_one_that_is_asked_for_is_set_up() -> None:
    def commands(*arguments: str) -> set[str]:
        return set(options.command_of(app, arguments).commands)

    assert commands("emit", "k.tile") == {"emit"} and commands("compare-models") == {"compare-models"}
    assert commands("emi") == commands() == commands("--help") > {"emit", "explain", "cache"}


def test_sizes_are_read_by_name() -> None:
    assert options.sizes(["M=512", "K=64", "M=16"]) == {"M": 16, "K": 64}


def test_one_argument_may_give_several_sizes() -> None:
    assert options.sizes(["M=512,K=auto", "lr=0.5"]) == {"M": 512, "K": "auto", "lr": 0.5}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("M", "NAME=VALUE.*--set M=512"),
        ("=3", "NAME=VALUE"),
        ("M=", "NAME=VALUE"),
        ("M=x", "'x' is no number"),
        ("M=nan", "'nan' is no number"),
    ],
)
def test_a_size_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(TileError, match=f"(?s){words}"):
        options.sizes([text])


def test_a_file_is_the_array_of_its_input(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((4, 2), np.float16))
    given = options.given_arrays([A, B], [f"A={tmp_path / 'a.npy'}"])
    assert list(given) == ["A"] and (given["A"] == 1).all()


def test_bf16_arrays_survive_a_file(tmp_path: Path) -> None:
    array = np.array([1.5, -2, 0.25], ml_dtypes.bfloat16)
    options.save_arrays(tmp_path / "new" / "folder", {"B": array})
    assert (options.read_array(tmp_path / "new" / "folder" / "B.npy", B) == array).all()


def write(path: Path, content: bytes | np.ndarray | dict) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(path.with_suffix(""), **content)
        path.with_suffix(".npz").rename(path)
    else:
        np.save(path, content, allow_pickle=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not an array", "is not a .npy array file.*numpy.save"),
        (b"", "is not a .npy array file"),
        (b"\x93NUMPY\x01\x00", "is not a .npy array file"),
        (np.array([object()]), "is not a .npy array file"),
        ({"x": np.zeros(2)}, "holds several arrays"),
        (np.zeros((2, 4), np.float16), "shape \\(2, 4\\), not \\(4, 2\\)"),
        (np.zeros((4, 2), np.float32), "type float32, not float16"),
    ],
)
def test_an_input_file_that_does_not_fit_is_refused(tmp_path: Path, content: bytes | np.ndarray | dict, words: str) -> None:
    write(tmp_path / "a.npy", content)
    with pytest.raises(TileError, match=f"(?s){words}"):
        options.given_arrays([A], [f"A={tmp_path / 'a.npy'}"])


def test_an_input_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="there is no file '.*gone.npy'"):
        options.given_arrays([A], [f"A={tmp_path / 'gone.npy'}"])


def test_a_folder_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="cannot read"):
        options.given_arrays([A], [f"A={tmp_path}"])


@pytest.mark.parametrize("name", ["X", "C"])
def test_an_input_that_the_kernel_does_not_have_is_refused_with_those_it_has(name: str) -> None:
    with pytest.raises(TileError, match="(?s)no such input.*A: f16\\[4, 2\\], B: bf16\\[3\\]"):
        options.given_arrays([A, B, C], [f"{name}=a.npy"])


def test_a_place_that_cannot_be_written_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TileError, match="cannot write"):
        options.save_arrays(tmp_path / "file" / "folder", {})


@pytest.mark.parametrize(
    "command",
    ["emit X -o", "run X --trace", "run X --save", "bench X --csv", "export X -o", "extract X -o", "simulate X --trace",
     "build X -o", "dataset X -o", "calibrate X -o", "teach X --data Y -o",
     *(f"compare-models X --{o}" for o in ("csv", "schedules", "plot"))],
)  # fmt: skip
def test_a_place_that_cannot_be_written_is_told_before_any_work(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run([*command.split(), str(tmp_path / "file" / "out")]) == 1
    assert "cannot write" in (told := capsys.readouterr().err) and "not a folder" in told


def test_a_folder_is_not_written_as_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["emit", "X", "-o", str(tmp_path)]) == 1
    assert "it is a folder" in capsys.readouterr().err


def test_a_plot_of_no_known_ending_is_told_before_the_kernels_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert run(["compare-models", "X", "--plot", "out.nonsense"]) == 1
    assert "does not end in '.nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "words"), [("M=1.5", "whole number"), ("M=0", "at least 1"), ("M=-4", "at least 1")])
def test_a_number_that_is_no_size_is_refused_where_a_size_is_meant(text: str, words: str) -> None:
    with pytest.raises(TileError, match=f"(?s)--set {text}.*{words}"):
        options.check_sizes(options.sizes([text]))
