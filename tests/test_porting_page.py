"""What docs/porting.md says of the words of others is so; its files and outputs are compared by tests/test_readme.py."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tile_eg.cli.app import run

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "porting.md").read_text(encoding="utf-8")
TABLES = "".join(re.findall(r"(?m)^\| word \| way out \|\n((?:\|.*\n)+)", PAGE))
REFUSED = re.findall(r"^\| `T\.(\w+)` \| (.*) \|$", TABLES, re.M)
KERNEL = """\
import tile_eg
import tile_eg.language as T


@tile_eg.jit
@T.prim_func
def kernel(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
    with T.Kernel(1) as b:
        x = T.alloc_shared((64, 64), "float32")
        y = T.{word}(x)
        T.copy(x, Y[0, 0])
"""
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("word", "way_out"), REFUSED)
def test_a_word_that_is_refused_is_told_with_the_way_out_of_the_page(
    word: str, way_out: str, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / f"{word}.py").write_text(KERNEL.format(word=word))
    assert run(["check", str(tmp_path / f"{word}.py")]) == 1
    told = capsys.readouterr().err
    named = [part.replace("`", "") for part in re.split(r"`, or `|` and `|`, `| of ", way_out)]
    assert f"T.{word}" in told.replace("T has no word ", "T.")
    assert [part for part in named if part.partition(":")[0] not in told.replace("`", "")] == []


def test_triton_s_kernels_of_the_page_are_python() -> None:
    kernels = [block for block in re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE) if "@triton.jit" in block]
    assert len(kernels) == 3 and all(ast.parse(block) for block in kernels)


@pytest.mark.slow
def test_every_command_of_the_page_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (lines,) = re.findall(r"(?ms)^```sh\n(.*?)^```$", PAGE)
    for line in lines.splitlines():
        assert run(line.partition("#")[0].split()[1:]) == 0


def test_the_page_shows_every_file_of_its_folder() -> None:
    files = sorted(path.name for path in (ROOT / "docs" / "porting").glob("*.py"))
    assert files == sorted(re.findall(r"<!-- file: docs/porting/(\S+) -->", PAGE))
