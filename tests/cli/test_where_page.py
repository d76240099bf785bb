"""What docs/simulator.md shows of `--where` and `--against` is what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tile_eg.cli import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "simulator.md"
EXAMPLE = re.compile(r"<!-- example: (.+?) -->\n```\w+\n(.*?)```\n```text\n(.*?)```", re.S)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "file", "shown"), EXAMPLE.findall(PAGE.read_text(encoding="utf-8")))
def test_the_page_shows_what_is_printed(
    command: str, file: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    update_golden: bool,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / command.split()[-1]).write_text(file)
    assert app.run(["run", *command.split()]) == app.USER_ERROR
    out = capsys.readouterr().out
    found = out[out.index("the first value") :]
    if update_golden:
        PAGE.write_text(PAGE.read_text(encoding="utf-8").replace(shown, found), encoding="utf-8")
    assert update_golden or found == shown


def test_the_page_has_both() -> None:
    assert len(EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))) == 2
