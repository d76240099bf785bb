"""What a notebook shows: the same as the prompt, as tables with bars, and memories as maps."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tile_eg.frontend.text import load_text
from tile_eg.report.html import Bar, Strip, html_table, html_tree
from tile_eg.report.text import Branch
from tile_eg.search.compiler import Lowered, lower

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def attention() -> Lowered:
    return lower(load_text((EXAMPLES / "flash_attention.tile").read_text()).instantiate({}))


class Tags(HTMLParser):
    """The tags that are open, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data.split()


@pytest.mark.slow
@pytest.mark.parametrize("view", ["schedule", "cost", "memory"])
def test_a_view_is_well_formed_and_says_what_the_prompt_says(attention: Lowered, view: str) -> None:
    shown = getattr(attention, view)
    tags = Tags(shown._repr_html_())
    assert not tags.open
    said = [w for w in re.split(r"[\s├└│─]+", str(shown)) if w and not w.startswith("0x") and w != "at"]
    assert set(said) <= set(tags.words)


def test_every_buffer_is_drawn_where_it_lies(attention: Lowered) -> None:
    page = attention.memory._repr_html_()
    drawn = sum(len(b.addresses) for b in attention.program.buffers)
    assert page.count("position:absolute") == drawn


def test_a_bar_is_as_long_as_its_part() -> None:
    assert "25.0%" in html_table([[Bar(0.25, "1")]])
    assert "100.0%" in html_table([[Bar(7.0, "too much")]])


def test_a_piece_of_a_memory_stands_to_scale() -> None:
    assert "left:50.00%;width:25.00%" in html_table([[Strip(((0.5, 0.75),))]])


def test_a_tree_draws_its_numbers_against_the_largest() -> None:
    roots = [Branch("all", ("", ""), [Branch("a", ("x", "10")), Branch("b", ("y", "40"))])]
    page = html_tree(roots, ("", "pipe", "cycles"), bars=2)
    assert "25.0%" in page and "100.0%" in page


def test_text_is_no_markup() -> None:
    assert "&lt;b&gt;" in html_table([["<b>"]])
