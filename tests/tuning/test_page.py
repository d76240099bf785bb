"""docs/tuning.md line by line: every command that can run here is run."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tile_eg.cli.app import run

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tuning.md").read_text()


@pytest.fixture
def folder(all_right: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "softmax.tile", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", PAGE)


@pytest.mark.filterwarnings("ignore:note")
def test_every_command_of_the_page_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in "".join(blocks("sh")).splitlines():
        words = shlex.split(line)
        assert words[0] == "tile-eg" and run(words[1:]) == 0, line
    exec(blocks("python")[0], {})
    assert "3 candidates tried, 3 right" in capsys.readouterr().out


def test_every_entry_of_the_file_is_on_the_page(folder: Path) -> None:
    from dataclasses import fields

    from tile_eg.search.tuned_file import Entry

    named = set(re.findall(r"`(\w+)`", "".join(line for line in PAGE.splitlines() if line.startswith("| `"))))
    assert {f.name for f in fields(Entry)} - {"what"} <= named
