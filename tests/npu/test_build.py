"""`tile-eg build` writes a directory that builds and runs a kernel without tile_eg, and checks its texts against headers."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.npu.cann import STANDIN
from tests.npu.test_bench import KERNEL
from tile_eg.cli.app import run
from tile_eg.errors import TileError
from tile_eg.npu.syntax import check

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]
ANY_ROWS = KERNEL.replace("M=64", "M: dyn").replace("scaled", "any_rows")


@pytest.fixture
def directory(tmp_path: Path, capsys: Captured) -> Path:
    (tmp_path / "scaled.tile").write_text(KERNEL)
    assert run(["build", str(tmp_path / "scaled.tile"), "-o", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    return tmp_path / "out"


def test_the_directory_names_every_file_that_it_holds(directory: Path) -> None:
    readme = (directory / "README.md").read_text()
    files = {p.name for p in directory.iterdir()} - {"README.md", "data"}
    assert all(f"`{name}`" in readme for name in files)
    assert not re.search(r"@[A-Z_]+@", "".join((directory / name).read_text() for name in files | {"README.md"}))


@pytest.mark.slow
def test_its_example_launches_the_kernel_and_compares(directory: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    assert run(["simulate", "simulate.asc", "--no-auto-sync", "--no-time"]) == 0
    assert "Y: 0 of 4096 elements wrong" in capsys.readouterr().out
    meant = (directory / "data" / "Y.meant.bin").read_bytes()
    (directory / "data" / "Y.meant.bin").write_bytes(b"\0\0\0\0\0\0\x59\x40" + meant[8:])
    assert run(["simulate", "simulate.asc", "--no-auto-sync", "--no-time"]) == 1
    assert "Y: 1 of 4096 elements wrong" in capsys.readouterr().out


@pytest.mark.slow
def test_a_kernel_of_any_size_takes_its_sizes_behind_the_workspace(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "any_rows.tile").write_text(ANY_ROWS)
    assert run(["build", str(tmp_path / "any_rows.tile"), "-o", str(tmp_path / "out")]) == 0
    assert "void* Y, void* workspace, int64_t M)" in (tmp_path / "out" / "any_rows.h").read_text()
    assert "const int64_t M = X.size(0);" in (tmp_path / "out" / "any_rows_torch.cpp").read_text()
    monkeypatch.chdir(tmp_path / "out")
    assert run(["simulate", "simulate.asc", "--no-auto-sync", "--no-time"]) == 0
    assert "Y: 0 of" in capsys.readouterr().out


HEADER = """\
#pragma once
#define GM_ADDR uint8_t*
namespace AscendC { inline void Touch(GM_ADDR, uint16_t) {} }
"""
TEXT = """\
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void scaled(GM_ADDR X, GM_ADDR Y, GM_ADDR workspace)
{
    KERNEL_TYPE_AIV_ONLY_HERE AscendC::Touch(X, 3);
}
"""


def checked(
    directory: Path, folder: Path, text: str = TEXT, host: tuple[str, str] = ("", ""), header: str = HEADER
) -> dict[str, list[str]]:
    """What is found wrong, by the text in which it is; the kernel's is one for a header that knows one function."""
    (folder / "include").mkdir(exist_ok=True)
    (folder / "include" / "kernel_operator.h").write_text(header)
    texts = {p.name: p.read_text().replace(*host) if host[0] else p.read_text() for p in directory.iterdir() if p.is_file()}
    texts["scaled.asc"] = text.replace("KERNEL_TYPE_AIV_ONLY_HERE ", "")
    return {c.what: list(c.wrong) for c in check(texts, "scaled", "dav-2201", [folder, STANDIN]) if not c.why_not}


@pytest.mark.slow
def test_texts_that_fit_the_headers_are_good(directory: Path, tmp_path: Path) -> None:
    found = checked(directory, tmp_path)
    assert found.keys() >= {"kernel, for vec cores", "host part, for .asc files", "host part, for the macros of 8.3", "example"}
    assert not any(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "told"), [("Tuch(X, 3)", "'Tuch' is not a member"), ('Touch(X, "3")', "invalid conversion"), ("Touch(X)", "too few")]
)
def test_a_call_that_the_headers_do_not_know_is_told_with_its_line(call: str, told: str, directory: Path, tmp_path: Path) -> None:
    wrong = checked(directory, tmp_path, TEXT.replace("Touch(X, 3)", call))["kernel, for vec cores"]
    assert any(w.startswith("kernel.asc:4: ") and told in w.replace("‘", "'").replace("’", "'") for w in wrong)


@pytest.mark.slow
def test_headers_of_the_high_level_api_are_not_read(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "include" / "adv_api").mkdir(parents=True)
    text = "#ifndef SOFTMAX_H\n#define SOFTMAX_H\n#include <what_only_cann_generates.h>\n#endif\n"
    (tmp_path / "include" / "adv_api" / "softmax.h").write_text(text)
    found = checked(directory, tmp_path, header=f'{HEADER}#include "adv_api/softmax.h"\n')
    assert found["kernel, for vec cores"] == []


@pytest.mark.slow
def test_headers_that_do_not_read_by_themselves_are_not_held_against_a_kernel(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(TileError, match=r"cannot read these headers.*kernel_operator\.h:4.*Word"):
        checked(directory, tmp_path, header=f"{HEADER}Word of_one_compiler;\n")


@pytest.mark.slow
def test_a_launch_whose_byte_count_is_a_pointer_is_found(directory: Path, tmp_path: Path) -> None:
    found = checked(directory, tmp_path, host=("<<<blocks, 0, stream>>>", "<<<blocks, nullptr, stream>>>"))
    assert found["host part, for .asc files"] and not found["host part, for the macros of 8.3"]


def test_simulating_the_folder_says_which_of_its_files_to_run(directory: Path, capsys: Captured) -> None:
    assert run(["simulate", str(directory)]) == 1
    assert f"help: cd {directory}; tile-eg simulate simulate.asc" in capsys.readouterr().err


@pytest.mark.slow
def test_without_headers_it_says_which_to_name(directory: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "empty").mkdir()
    source = str(directory.parent / "scaled.tile")
    assert run(["build", source, "--syntax-only", "--headers", str(tmp_path / "empty")]) == 1
    assert "no Ascend C headers in" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.skipif(not os.environ.get("ASC_DEVKIT"), reason="ASC_DEVKIT names no checkout of CANN's public headers")
@pytest.mark.parametrize("example", sorted((ROOT / "examples").rglob("*.tile")), ids=lambda p: p.stem)
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_every_example_fits_the_public_headers(example: Path, chip: str, capsys: Captured) -> None:
    assert run(["build", str(example), "--chip", chip, "--syntax-only", "--headers", os.environ["ASC_DEVKIT"]]) == 0
    assert ": good" in capsys.readouterr().out
