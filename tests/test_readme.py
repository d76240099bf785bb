"""What pages show is what comes out: every marked block is compared with its file or command."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tile_eg.rules.user import checked

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def updater() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update_readme", ROOT / "docs" / "update_readme.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_marked_block_is_filled_and_the_rest_left_alone(updater: ModuleType) -> None:
    text = "before\n<!-- file: Makefile; lines 1-2 -->\n```make\nold\n```\nafter\n"
    lines = (ROOT / "Makefile").read_text().splitlines()[:2]
    want = ["before", "<!-- file: Makefile; lines 1-2 -->", "```make", *lines, "```", "after", ""]
    assert updater.filled(text) == "\n".join(want)


def test_a_block_can_end_before_a_line(updater: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo\nthree\n")
    monkeypatch.setattr(updater, "ROOT", tmp_path)
    mark = "<!-- file: a.txt; until two -->\n```text\n"
    assert updater.filled(f"{mark}```\n") == f"{mark}one\n```\n"


def test_an_output_is_what_the_command_prints(updater: ModuleType) -> None:
    text = "<!-- output: tile-eg chips -->\n```text\n```\n"
    assert "910B2 (default)" in updater.filled(text)


@pytest.mark.slow
def test_the_pages_are_up_to_date(updater: ModuleType) -> None:
    for page in updater.PAGES:
        text = page.read_text()
        assert updater.filled(text) == text, "run `make readme`"


def test_the_page_of_errors_is_up_to_date(updater: ModuleType) -> None:
    assert updater.errors_page() == updater.ERRORS.read_text(), "run `make readme`"


@pytest.mark.parametrize("page", ["README.md", "docs/search.md", "docs/porting.md"])
def test_every_path_that_a_page_links_to_is_there(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)
    links = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in t]
    assert [t for t in links if not ((ROOT / page).parent / t).exists()] == []


@pytest.mark.slow
def test_the_rule_that_the_page_on_the_search_shows_is_taken() -> None:
    (text,) = re.findall(r"^```lisp\n(.*?)^```", (ROOT / "docs" / "search.md").read_text(), flags=re.M | re.S)
    assert checked("mine.egg", text).rules
