"""What each number of a chip's tables rests on: published, fitted, or assumed with a range."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tile_eg
from tile_eg.chips import known_chips, load_chip
from tile_eg.chips.loader import chip_marks, ends
from tile_eg.chips.marks import KEYS

CHIPS = known_chips(None)
FILES = sorted((Path(tile_eg.__file__).parent / "chips").glob("*.toml"))


def with_source(table: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tables that have a source of their own."""
    if "source" in table:
        yield name, table
    for key, value in table.items():
        if isinstance(value, Mapping) and key not in KEYS:
            yield from with_source(value, f"{name}.{key}" if name else key)


TABLES = [(f.stem, *each) for f in FILES for each in with_source(tomllib.loads(f.read_text("utf-8")), "")]


@pytest.mark.parametrize("chip", CHIPS)
def test_every_number_has_a_mark_and_a_source(chip: str) -> None:
    marks = chip_marks(chip)
    assert len(marks) > 300
    assert all(m.kind in ("published", "fitted", "assumed") and m.source for m in marks)


@pytest.mark.parametrize("chip", CHIPS)
def test_an_assumed_number_lies_in_its_range(chip: str) -> None:
    for m in chip_marks(chip):
        if m.kind == "assumed":
            values, low, high = (v if isinstance(v, list) else [v] for v in (m.value, m.low, m.high))
            assert all(a <= v <= b for v, a, b in zip(values, low, high, strict=True)), m


@pytest.mark.parametrize(("file", "name", "table"), TABLES, ids=[f"{f}.{n}" for f, n, _ in TABLES])
def test_marks_name_numbers_and_agree_with_the_source(file: str, name: str, table: Mapping[str, Any]) -> None:
    parts = [table, *(v for k, v in table.items() if isinstance(v, Mapping) and k not in KEYS)]
    named = [*table.get("fitted", ()), *table.get("assumed", {})]
    assert all(any(key in part for part in parts) for key in named)
    assert not re.search(r"\bFIT\b", table["source"]) or table.get("fitted")
    assert not re.search(r"\bASSUMED\b", table["source"]) or table.get("assumed")


def test_a_chip_that_somebody_changed_has_no_ends() -> None:
    assert ends(replace(load_chip(), clock_mhz=1000)) is None


def test_a_chip_of_one_s_own_has_the_ends_of_its_base(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "910B2"\nname = "marked"\nnames = []\nsource = "here"\n[launch]\nbase_us = 5.0\nsource = "here"\n')
    chip = load_chip(str(file))
    both = ends(chip)
    assert both is not None
    assert [c.launch.base_us for c in both] == [5.0, 5.0]
    assert both[0].sync.cross_latency < chip.sync.cross_latency < both[1].sync.cross_latency


@pytest.mark.parametrize("chip", CHIPS)
def test_the_ends_of_a_chip_are_those_of_its_ranges(chip: str) -> None:
    here = load_chip(chip)
    both = ends(here)
    assert both is not None
    quick, slow = both
    assert quick.sync.cross_latency == here.sync.cross_latency_low
    assert slow.sync.cross_latency == here.sync.cross_latency_high
    assert quick.path("other").peak > here.path("other").peak > slow.path("other").peak
    assert quick.memories == here.memories == slow.memories
    assert quick.launch_us(20, True) <= here.launch_us(20, True) <= slow.launch_us(20, True)
