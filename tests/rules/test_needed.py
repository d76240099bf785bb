"""Every rule is there for a kernel: docs/rules.md names one that is worse without it; the kernels are compiled again."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.rules.kernels import SHOWN_BY, kernels
from benchmarks.rules.needed import STANDS_IN, Search, choices
from benchmarks.rules.page import PAGE, rows_of

ROWS = dict(rows_of(PAGE.read_text()))
QUICK = ("nest-row", "scaled-first", "v-mask", "l0-split-k", "fixpipe-l1", "cell-copy", "fixpipe-ub-cast")

LARGE = ("2048", "4096", "16384", "16 heads", "wide product", "twelve times")
LARGE += ("long sum of products", "long products", "flash_attention")
"""Of kernels that are compiled for seconds: `make rules` compiles them, and the long suite."""


def marks(rule: str, name: str) -> tuple[pytest.MarkDecorator, ...]:
    return () if rule in QUICK else (pytest.mark.long,) if any(word in name for word in LARGE) else (pytest.mark.slow,)


@cache
def search() -> Search:
    return Search(kernels())


def test_no_rule_is_without_a_kernel_that_needs_it() -> None:
    assert [r for r in choices() if r not in ROWS] == []


def test_every_line_is_about_a_rule_that_there_is() -> None:
    assert [r for r in ROWS if r not in choices()] == []


def test_the_page_shows_rules_by_the_kernels_that_are_tried_first() -> None:
    """Where one no longer needs its rule, `make rules` looks through all kernels."""
    assert {rule: ROWS.get(rule) for rule in SHOWN_BY} == SHOWN_BY


def test_rules_that_stand_in_for_another_are_there() -> None:
    assert STANDS_IN.keys() | set(STANDS_IN.values()) <= set(choices())


@pytest.mark.few(8)
@pytest.mark.parametrize(("rule", "name"), [pytest.param(*r, marks=marks(*r)) for r in ROWS.items()])
def test_a_kernel_is_worse_without_the_rule(rule: str, name: str) -> None:
    assert search().tried(rule, name).needed
