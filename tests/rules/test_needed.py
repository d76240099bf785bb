"""Every rule is there for a kernel: docs/rules.md names one that is worse without it; a third of the lines is tried."""

from __future__ import annotations

import pytest

from benchmarks.rules.kernels import kernels
from benchmarks.rules.needed import choices, microseconds, tried
from benchmarks.rules.page import PAGE, rows_of
from tile_eg.compiler import lower

ROWS = rows_of(PAGE.read_text())


def test_every_line_is_about_a_rule_that_there_is() -> None:
    assert len(ROWS) > 75
    assert {r for r, _ in ROWS} <= set(choices())


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "name"), ROWS[::3])
def test_a_kernel_is_worse_without_the_rule(rule: str, name: str) -> None:
    kernel = kernels()[name]
    assert tried(rule, name, kernel, microseconds(lower(kernel))).needed
