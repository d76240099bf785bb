"""What docs/npu.md shows, as far as it can be run without an NPU: kernel, host part and main in the simulator."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from tile_eg.cli.app import run

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]


def emitted(folder: Path, example: str) -> Path:
    """A folder with the kernel's text, its host part and its spec."""
    for option, name in (((), ".asc"), (("--host",), "_host.h"), (("--spec",), ".toml")):
        source = str(ROOT / "examples" / f"{example}.tile")
        assert run(["emit", source, *option, "-o", str(folder / f"{example}{name}")]) == 0
    return folder


@pytest.mark.slow
def test_the_main_of_the_page_launches_the_kernel_that_was_emitted(tmp_path: Path, capsys: Captured) -> None:
    shutil.copy(ROOT / "examples" / "npu" / "main.asc", emitted(tmp_path, "softmax"))
    assert run(["simulate", str(tmp_path / "main.asc"), "--no-auto-sync"]) == 0
    assert "expected 0.00195312" in capsys.readouterr().out


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("example", ["softmax", "gemm", "gemm_exp"])
def test_the_spec_that_is_emitted_launches_the_text_that_is_emitted(example: str, tmp_path: Path, capsys: Captured) -> None:
    folder = emitted(tmp_path, example)
    assert run(["simulate", str(folder / f"{example}.asc"), "--args", str(folder / f"{example}.toml")]) == 0
    assert "good, 0 findings" in capsys.readouterr().out


@pytest.mark.slow
def test_the_spec_names_the_tensors_in_their_order_and_then_the_workspace(tmp_path: Path) -> None:
    spec = tomllib.loads((emitted(tmp_path, "gemm_exp") / "gemm_exp.toml").read_text())
    assert [a["name"] for a in spec["arguments"]] == ["A", "B", "C", "D", "workspace"]
    assert [a["name"] for a in spec["arguments"] if a.get("output")] == ["C", "D"]


@pytest.mark.slow
def test_an_output_that_blocks_add_to_begins_with_zeros(tmp_path: Path) -> None:
    text = "kernel k(X: f32[64, 32]) -> Y: f32[32, 32] { grid b = 2 shared x: f32[32, 32] x = X[b*32, 0] atomic Y[0, 0] += x }"
    (tmp_path / "k.tile").write_text(text)
    assert run(["emit", str(tmp_path / "k.tile"), "--spec", "-o", str(tmp_path / "k.toml")]) == 0
    assert tomllib.loads((tmp_path / "k.toml").read_text())["arguments"][1]["generator"] == "zeros"


@pytest.mark.slow
def test_the_host_part_names_no_file_that_depends_on_the_option_o(tmp_path: Path) -> None:
    included = re.findall(r'#include "(.*)"', (emitted(tmp_path, "softmax") / "softmax_host.h").read_text())
    assert included == ["acl/acl.h", "aclrtlaunch_softmax.h"]
