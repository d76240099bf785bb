"""Whatever is done to a text, the answer is a kernel or an error with its place: never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text

TEXTS = [p.read_text() for p in sorted((Path(__file__).parents[2] / "examples").glob("*.tile"))]
TOKENS = re.compile(r"\w+|[^\w\s]|\s+")
EXTRA = {"0", "1.5", "None", "inf", ".T", "max", "select", "@", "//", "i", "rowsum", "let", "parallel"}
PIECES = sorted({t for text in TEXTS for t in TOKENS.findall(text) if t.strip()} | EXTRA)


def error_of(text: str) -> TileError | None:
    try:
        kernel = load_text(text, "x.tile").instantiate()
        check(kernel)
        to_values(kernel)
    except TileError as e:
        return e
    return None


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_text_with_a_few_changed_words_is_read_or_refused(data):
    tokens = TOKENS.findall(data.draw(st.sampled_from(TEXTS)))
    for _ in range(data.draw(st.integers(1, 3))):
        n = data.draw(st.integers(0, len(tokens) - 1))
        tokens[n : n + data.draw(st.integers(0, 2))] = data.draw(st.lists(st.sampled_from(PIECES), max_size=2))
    error = error_of("".join(tokens))
    assert error is None or (error.message and error.render().startswith("error: "))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="kernel (){}[]=:,+-*/@.0129abc\n#", max_size=40))
def test_any_characters_are_read_or_refused(text):
    error = error_of(text)
    assert error is None or error.span is not None
