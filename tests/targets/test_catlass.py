"""CATLASS' text beside ours: which runs count, and what is not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.targets.catlass import MOST_PRODUCTS, Timed, _told, timed
from benchmarks.targets.rows import FAMILIES
from benchmarks.validate.replayed import Text, _summary, texts
from tile_eg.chips import load_chip
from tile_eg.errors import TileError

LAUNCHES = [{"microseconds": 3.0, "microseconds_range": [2.5, 4.0]}, {"microseconds": 4.5, "microseconds_range": [4.5, 5.0]}]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    file = tmp_path / "examples" / "00_basic_matmul" / "basic_matmul.cpp"
    file.parent.mkdir(parents=True)
    file.write_text("#error no kernel\n")
    return tmp_path


def test_all_launches_of_a_run_that_finds_itself_right_count() -> None:
    assert _told(json.dumps({"printed": "Compare success.\n", "launches": LAUNCHES})) == Timed(7.5, 7.0, 9.0)


def test_a_run_that_finds_itself_wrong_has_no_time() -> None:
    assert _told(json.dumps({"printed": "Compare failed.\n", "launches": LAUNCHES})) is None


@pytest.mark.slow
def test_a_text_that_does_not_run_has_no_time(checkout: Path) -> None:
    assert timed(checkout, "00_basic_matmul", (16, 16, 16), "910B2") is None


def test_what_is_too_large_is_not_run(checkout: Path) -> None:
    assert timed(checkout, "00_basic_matmul", (MOST_PRODUCTS, 2, 1), "910B2") is None


def test_a_folder_without_the_example_is_named(tmp_path: Path) -> None:
    with pytest.raises(TileError, match=r"there is no .*basic_matmul\.cpp"):
        timed(tmp_path, "00_basic_matmul", (16, 16, 16), "910B2")


def test_every_product_of_the_table_has_an_example_of_catlass() -> None:
    assert all(row.catlass for row in FAMILIES["gemm"](load_chip()))


def test_texts_of_which_the_time_is_published_say_their_size_and_source() -> None:
    rows = list(texts())
    assert len({(row.example, row.sizes, row.chip) for row in rows}) == len(rows) >= 24
    assert all(row.source.startswith("hicann/catlass@") and min(row.sizes) > 0 < row.measured for row in rows)


def test_texts_inside_the_range_that_is_predicted_are_counted() -> None:
    row = Text("00_basic_matmul", (16, 16, 16), "910B2", 4.0, "")
    assert _summary([(row, Timed(3.0, 2.0, 5.0)), (row, Timed(5.0, 4.5, 6.0))]).startswith("mean error of 2 texts: 25.0%; 1 lie")
