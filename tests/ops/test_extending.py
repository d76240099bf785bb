"""The page on extending is true: what it adds is added to a copy of the package, and kernels that use it run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
ADDED = re.compile(r"<!-- add: (?P<file>[^;]+); before: (?P<before>.+?) -->\n```\w+\n(?P<text>.*?)^```$", re.M | re.S)
NEW = re.compile(r"<!-- new: (?P<file>.+?) -->\n```\w+\n(?P<text>.*?)^```$", re.M | re.S)
KERNELS = list(re.compile(r"<!-- kernel: (?P<name>\w+) -->\n```tile\n(?P<text>.*?)^```$", re.M | re.S).finditer(PAGE))


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package in which the page's blocks have been added."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "tile_eg", folder / "tile_eg", ignore=shutil.ignore_patterns("__pycache__"))
    for block in ADDED.finditer(PAGE):
        file = folder / block["file"]
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        at = next(n for n, line in enumerate(lines) if line.lstrip().startswith(block["before"]))
        file.write_text("".join([*lines[:at], block["text"], *lines[at:]]), encoding="utf-8")
    for block in NEW.finditer(PAGE):
        (folder / block["file"]).write_text(block["text"], encoding="utf-8")
    return folder


def tile_eg_in(folder: Path, *words: str) -> str:
    """What the command line of a copy prints. It has to end well."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tile_eg", *words]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_adds_operations_a_rule_prices_and_a_transform() -> None:
    files = [Path(block["file"]).suffix for block in (*ADDED.finditer(PAGE), *NEW.finditer(PAGE))]
    assert sorted(files) == [".egg", *[".py"] * 5, ".toml", ".toml"]


@pytest.mark.slow
def test_the_search_makes_the_transform_and_goes_without_it(extended: Path) -> None:
    file = extended / "tall.tile"
    file.write_text(KERNELS[0]["text"].replace("M=20", "M=64"))
    assert "narrower-blocks" in tile_eg_in(extended, "rules", "moves")
    asked = tile_eg_in(extended, "explain", str(file), "--why-not", "narrower-blocks")
    assert "narrower-blocks: 2 blocks a tile" in asked and "not offered" not in asked
    without = "--without", "narrower-blocks", "--why-not", "narrower-blocks"
    assert "left out" in tile_eg_in(extended, "explain", str(file), *without)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["name"])
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_a_kernel_that_uses_the_addition_runs(extended: Path, kernel: re.Match[str], chip: str) -> None:
    file = extended / f"{kernel['name']}.tile"
    file.write_text(kernel["text"])
    assert "in the simulator: good" in tile_eg_in(extended, "run", str(file), "--chip", chip)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["name"])
def test_without_the_addition_the_operation_is_unknown(kernel: re.Match[str], tmp_path: Path) -> None:
    from tile_eg.errors import TileError
    from tile_eg.frontend.text import load_text

    with pytest.raises(TileError, match=f"unknown function `{kernel['name']}`"):
        load_text(kernel["text"]).instantiate()
