"""The course on cost models: every block of the page is a step of its script, and every step runs, here at small size."""

from __future__ import annotations

import re

import pytest

from docs import course


@pytest.fixture(scope="module")
def blocks() -> dict[str, str]:
    pytest.importorskip("sklearn", reason="the course grows trees (pip install 'tile_eg[learn]')")
    pytest.importorskip("scipy", reason="the course fits constants (pip install 'tile_eg[fit]')")
    return dict(course.run_course(small=True))


def test_the_pages_blocks_are_the_scripts_steps() -> None:
    named = [m["name"] for m in course.BLOCK.finditer(course.PAGE.read_text(encoding="utf-8"))]
    assert named == list(course.Course(small=True).steps)


def test_every_block_of_the_page_is_filled() -> None:
    for mark in course.BLOCK.finditer(course.PAGE.read_text(encoding="utf-8")):
        assert len(mark.group(0).splitlines()) > 3, mark["name"]


def commands(text: str) -> list[str]:
    """The commands of a block: their options by name, without values."""
    lines = [line for line in text.splitlines() if line.startswith("$ tile-eg ")]
    return [" ".join([line.split()[2], *re.findall(r"(?<= )--?[a-z-]+", line)]) for line in lines]


@pytest.mark.slow
def test_every_step_runs_at_small_size_with_the_pages_commands(blocks: dict[str, str]) -> None:
    page = {m["name"]: m.group(0) for m in course.BLOCK.finditer(course.PAGE.read_text(encoding="utf-8"))}
    for name, text in blocks.items():
        asked = [c.replace(" -k", "").replace(" --random", "") for c in commands(text)]
        assert asked == commands(page[name]) or (name == "graphs" and not text)


@pytest.mark.slow
def test_a_taught_model_guides_the_search(blocks: dict[str, str]) -> None:
    assert "candidates were ordered by ridge:Order@order.json, and timeline decided" in blocks["plug"]


@pytest.mark.slow
def test_the_known_constants_are_found_at_small_size(blocks: dict[str, str]) -> None:
    line = next(row for row in blocks["calibrate"].splitlines() if row.startswith("launch.prologue_us"))
    assert float(line.split()[2]) == pytest.approx(3.5, rel=0.02) and " determined" in line and "not determined" not in line


@pytest.mark.slow
def test_a_broken_model_is_named_and_the_default_takes_over(blocks: dict[str, str]) -> None:
    assert "'broken'" in blocks["faults"] and "the default models took over" in blocks["faults"]
