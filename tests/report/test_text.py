"""What people read lines up, and every number has its unit."""

from __future__ import annotations

import pytest

from tile_eg.report.text import Branch, Text, duration, share, size, table, times, tree


@pytest.mark.parametrize(("count", "shown"), [(96, "96 B"), (65536, "64 KiB"), (3 << 19, "1.5 MiB"), (1 << 31, "2 GiB")])
def test_bytes_are_counted_in_units_of_1024(count: int, shown: str) -> None:
    assert size(count) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, "0 ns"), (1.234e-5, "12.3 us"), (0.0456, "45.6 ms"), (2e3, "2000 s")])
def test_times_have_three_digits(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_share_of_nothing_is_no_number() -> None:
    assert (share(1, 4), share(1, 0)) == ("25 %", "-")


def test_columns_line_up_and_numbers_stand_right() -> None:
    assert table([("a", 1), ("bbb", 22)], ("name", "n"), right=[1]) == "name   n\na      1\nbbb   22"


def test_a_tree_shows_what_hangs_under_what() -> None:
    root = Branch("loop", ("8 trips",), [Branch("load", ("L1",), [Branch("x")]), Branch("mmad", ("L0C",))])
    assert tree([root]).splitlines() == ["loop     8 trips", "├─ load  L1", "│  └─ x", "└─ mmad  L0C"]


def test_a_text_shows_itself_at_the_prompt_and_in_a_notebook() -> None:
    text = Text("a < b\nc")
    assert repr(text) == "a < b\nc"
    assert text._repr_html_() == "<pre>a &lt; b\nc</pre>"


@pytest.mark.parametrize(("n", "words"), [(0, "0 times"), (1, "once"), (2, "twice"), (3, "3 times")])
def test_how_often_is_told_in_words(n: int, words: str) -> None:
    assert times(n) == words
