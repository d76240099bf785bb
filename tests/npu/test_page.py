"""docs/npu.md line by line: every command that can run here is run, with the stand-in as the NPU."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from benchmarks.validate.own import learn, own_rows
from tests.npu.cann import StandIn
from tile_eg.cli.app import run

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "npu.md").read_text()
NOT_HERE = ("source ", "pip install ", "cmake ", "bisheng ")
"""How lines begin that need CANN, or the network."""
NEEDS_HEADERS = "--syntax-only"


def blocks(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", PAGE)


def done(line: str) -> None:
    """Runs a line as a shell would; one of `NOT_HERE` is left out."""
    words = shlex.split(line)
    if words[0] == "tile-eg":
        assert run(words[1:]) == 0, line
    elif words[:3] == ["python", "-m", "benchmarks.validate"]:
        learn(own_rows(Path(words[words.index("--csv") + 1])), Path(words[words.index("--table") + 1]))
    else:
        assert line.startswith(NOT_HERE), f"this line is not run by a test: {line}"


@pytest.fixture
def folder(npu: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "examples").mkdir()
    for name in ("softmax", "gemm"):
        shutil.copy(ROOT / "examples" / f"{name}.tile", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_every_command_of_the_page_that_can_run_here_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in "".join(blocks("sh")).splitlines():
        if line.startswith("cd "):
            monkeypatch.chdir(Path.cwd() / line.removeprefix("cd "))
        elif NEEDS_HEADERS not in line:
            done(line)
    assert (folder / "times.csv").read_text().count("task_time") == 2 and (folder / "measured.json").is_file()
    assert run(["emit", "examples/gemm.tile", "--cost-model", "table@measured.json", "-o", "searched.asc"]) == 0


def test_the_page_s_python_without_torch_runs(folder: Path) -> None:
    exec(next(b for b in blocks("python") if "torch" not in b), {})
