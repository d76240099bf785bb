"""The page of kernels: a row that misses its target says what holds it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from benchmarks.families import EXAMPLES
from benchmarks.families.__main__ import SECTION
from benchmarks.families.example import FOLDER, Example
from tile_eg.chips import DEFAULT_CHIP

PRICED = [pytest.param(e, id=e.file) for e in EXAMPLES if e.real]
NAMED = re.compile(r"\[.*?\]\((?P<path>.*?)\)")


def sections() -> dict[str, list[str]]:
    page = (FOLDER / "README.md").read_text("utf-8")
    return {m["name"]: m["lines"].splitlines() for m in SECTION.finditer(page)}


def rows(example: Example) -> list[list[str]]:
    """The cells of its rows: those after the one that links its file, up to the next link."""
    return [cells for path, cells in _rows(example.family) if FOLDER / path == example.path]


def _rows(family: str) -> Iterator[tuple[str, list[str]]]:
    path = ""
    for line in sections()[family]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        path = named["path"] if (named := NAMED.match(cells[0])) else path
        if path and len(cells) > 1:
            yield path, cells


def times_its_bound(cells: list[str], chip: str = DEFAULT_CHIP) -> float:
    """Of the slower chip; a dash is a chip without a schedule. Of a kernel of another chip than the first, on that."""
    *_, ours, _, other, _ = cells
    counted = (ours, other) if chip == DEFAULT_CHIP else (other,)
    return max(float("inf") if cell == "-" else float(cell.split(",")[0]) for cell in counted)


@pytest.mark.parametrize("example", PRICED)
def test_a_kernel_beyond_its_target_says_what_holds_it(example: Example) -> None:
    assert example.slack is not None
    assert example.held or max(times_its_bound(cells, example.chip) for cells in rows(example)) <= example.slack


@pytest.mark.parametrize("example", PRICED)
def test_the_page_has_a_row_for_each_real_size(example: Example) -> None:
    assert [cells[3] for cells in rows(example)] == list(example.real)


@pytest.mark.parametrize("family", sections())
def test_the_page_says_what_the_list_says(family: str) -> None:
    said = [line for line in sections()[family] if line.startswith("- ")]
    assert said == [f"- `{e.path.stem}`: {e.held}" for e in EXAMPLES if e.family == family and e.held]
