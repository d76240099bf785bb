"""Rows that are put together of parts may be stored part by part, where each part lies behind the one before it."""

from __future__ import annotations

import pytest

from benchmarks.rules.texts import texts
from tests.extract.checked import check_numbers
from tests.extract.kernels import kernel
from tile_eg.extract.chaos import Random
from tile_eg.extract.exact import Exact
from tile_eg.ir.program import Instr, walk
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

RULES = ("stored-beside", "stored-alone")
PARTS = texts()["rows of three parts"]
SHORT = PARTS.replace("M=256", "M=250")
HALVES = """
kernel halves[M=64, N=128](X: f32[M, N], Y: f32[M, N]) -> C: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N]
  x = X[0, 0]
  y = Y[0, 0]
  parallel (i, j) in (M, 64) { y[i, j + FIRST] = exp(x[i, j]) }
  C[0, 0] = y
}
"""


def ops(text: str, *without: str) -> list[str]:
    """The instructions of the vector core."""
    program = lower(kernel(text), search=search_options(without=without)).program
    return [n.op for n in walk(program.vector) if isinstance(n, Instr)]


@pytest.mark.slow
@pytest.mark.parametrize("text", [PARTS, SHORT], ids=["whole", "short"])
def test_each_part_is_stored_by_itself_and_nothing_is_put_together(text: str) -> None:
    made = ops(text)
    assert "vput" not in made and "vdup" not in made
    assert made.count("ub_to_gm") == 3


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_without_the_rules_they_are_put_together_first(rule: str) -> None:
    assert "vput" in ops(PARTS, rule)


@pytest.mark.slow
def test_what_is_stored_around_a_part_is_stored_first() -> None:
    behind = ops(HALVES.replace("FIRST", "64"))
    assert "vput" not in behind and behind.count("ub_to_gm") == 2


@pytest.mark.slow
def test_a_part_with_something_behind_it_is_put_there() -> None:
    assert "vput" in ops(HALVES.replace("FIRST", "32"))


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Exact(), Random(0), Random(1)], ids=["exact", "random", "another"])
@pytest.mark.parametrize("text", [PARTS, SHORT, HALVES.replace("FIRST", "64")], ids=["whole", "short", "behind"])
def test_the_numbers_are_those_of_the_whole(text: str, extractor: Exact | Random) -> None:
    """Laws of "stored-beside" and "stored-alone"."""
    check_numbers(kernel(text), extractor)
