"""No rule without a test of its law: equalities of values in numbers, facts in numbers, the rest in the simulator."""

from __future__ import annotations

from pathlib import Path

from tests.rules.covering import ELSEWHERE, named_tests
from tests.rules.test_facts import PLACED
from tests.rules.test_implements import GRIDS, USES
from tile_eg.rules import registry

ROOT = Path(__file__).parents[2]


def test_every_rule_has_a_law_that_is_tested() -> None:
    facts = {r.name for r in registry().values() if r.law == "fact"}  # test_facts.py asks that all of them speak
    assert [r for r in registry() if r not in facts and not named_tests(r)] == []


def test_the_tests_named_here_are_there_and_about_these_rules() -> None:
    for rule, tests in ELSEWHERE.items():
        for file, name in (test.split("::") for test in tests):
            text = (ROOT / file).read_text()
            assert f"def {name}(" in text and f'"{rule}"' in text


def test_no_test_is_about_a_rule_that_is_gone() -> None:
    assert ({rule for rule, _, _ in USES} | set(GRIDS) | ELSEWHERE.keys() | PLACED) - registry().keys() == set()
