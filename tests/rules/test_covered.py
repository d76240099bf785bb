"""No rule without a test of its law: equalities of values in numbers, facts in numbers, the rest in the simulator."""

from __future__ import annotations

from pathlib import Path

from tests.rules.instances import laws_of_values
from tests.rules.test_facts import PLACED
from tests.rules.test_implements import GRIDS, USES
from tile_eg.rules import registry

TESTS = Path(__file__).parents[1]
ELSEWHERE = {
    "deeper-panels": "rules/test_tiling.py", "whole-panels": "rules/test_tiling.py", "product-in-two": "rules/test_tiling.py",
    "product-in-two-tb": "rules/test_tiling.py", "split-depth": "test_split_depth.py", "split-depth-added": "test_split_depth.py",
    "operand-in-strips": "test_operand_in_strips.py", "gm-l1-strips": "test_operand_in_strips.py",
}  # fmt: skip
"""Rules that rewrite loops, or long products, and those of two phases: the files with their laws."""


def test_every_rule_has_a_law_that_is_tested() -> None:
    facts = {r.name for r in registry().values() if r.law == "fact"}  # test_facts.py asks that all of them speak
    covered = facts - PLACED | laws_of_values().keys() | {rule for rule, _, _ in USES} | set(GRIDS) | ELSEWHERE.keys() | PLACED
    assert sorted(registry().keys() - covered) == []


def test_the_tests_named_here_are_about_these_rules() -> None:
    assert [r for r, file in ELSEWHERE.items() if f'"{r}"' not in (TESTS / file).read_text()] == []


def test_no_test_is_about_a_rule_that_is_gone() -> None:
    assert ({rule for rule, _, _ in USES} | set(GRIDS) | ELSEWHERE.keys() | PLACED) - registry().keys() == set()
