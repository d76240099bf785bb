"""What the README shows is what comes out: every marked block is compared with its file or command."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

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


def test_an_output_is_what_the_command_prints(updater: ModuleType) -> None:
    text = "<!-- output: tile-eg chips -->\n```text\n```\n"
    assert "910B2 (default)" in updater.filled(text)


@pytest.mark.slow
def test_the_readme_is_up_to_date(updater: ModuleType) -> None:
    text = (ROOT / "README.md").read_text()
    assert updater.filled(text) == text, "run `make readme`"


def test_every_path_that_the_readme_links_to_is_there() -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / "README.md").read_text(), flags=re.M | re.S)
    links = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in t]
    assert [t for t in links if not (ROOT / t).exists()] == []
