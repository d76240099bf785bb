"""E-graphs that hold only the rules that may match: what they find is what all rules find."""

from __future__ import annotations

import pytest

from tests.extract.kernels import CHIP, GATED, SWAP, kernel
from tile_eg.egraph import bases, saturate
from tile_eg.egraph.saturate import commands_of
from tile_eg.frontend.ssa import to_values
from tile_eg.rules import registry, theories
from tile_eg.rules.reached import reached

ADD = """
kernel add[N=512](A: f32[N], B: f32[N]) -> C: f32[N] {
  grid bx = ceildiv(N, 128)
  fragment a: f32[128], b: f32[128]
  a = A[bx*128]
  b = B[bx*128]
  C[bx*128] = a + b
}
"""


def rules_reached(text: str) -> frozenset[str]:
    return reached(theories(), commands_of(to_values(kernel(text)), CHIP)[1])


def found(text: str) -> tuple:
    graph = saturate(to_values(kernel(text)), CHIP)
    return str(list(graph.classes.items())), [{r: n for r, n in p.matches.items() if n} for p in graph.phases]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("text", [ADD, GATED, SWAP])
def test_the_rules_of_a_kernel_find_what_all_rules_find(text: str, monkeypatch) -> None:
    monkeypatch.setattr(bases, "_bases", {})
    own = found(text)
    monkeypatch.setattr(bases, "_bases", {})
    monkeypatch.setattr(bases, "reached", lambda held, commands: frozenset(registry(held)))
    assert found(text) == own


def test_a_kernel_without_products_reaches_no_rule_of_products() -> None:
    assert not any(rule.startswith("mmad") for rule in rules_reached(ADD))


def test_a_further_kernel_finds_the_rules_that_the_first_one_had_no_use_for(monkeypatch) -> None:
    monkeypatch.setattr(bases, "_bases", {})
    saturate(to_values(kernel(ADD)), CHIP)
    assert rules_reached(GATED) - rules_reached(ADD)
    assert saturate(to_values(kernel(GATED)), CHIP).classes


def test_a_base_that_has_a_kernels_rules_serves_it(monkeypatch) -> None:
    monkeypatch.setattr(bases, "_bases", {})
    saturate(to_values(kernel(GATED)), CHIP)
    monkeypatch.setattr(bases, "_loaded", None)
    assert saturate(to_values(kernel(GATED.replace("K=128", "K=256"))), CHIP).classes


@pytest.fixture
def asked(monkeypatch):
    """What asks for an e-graph with some rules of all, and says which ones it has; no rule is read."""
    monkeypatch.setattr(bases, "_bases", {})
    monkeypatch.setattr(bases, "_loaded", lambda held, left_out: object())
    return lambda names: bases._base(theories(), frozenset(names)).names


def test_few_rules_that_are_often_needed_are_read_by_themselves(asked) -> None:
    names = sorted(registry(theories()))
    few, others = frozenset(names[:50]), frozenset(names[60:120])
    assert asked(few) == few
    assert [asked(others) for _ in range(bases.OFTEN + 1)] == [frozenset(names)] * (bases.OFTEN + 1)
    assert asked(others) == others and asked(few) == few
    assert asked(names) == frozenset(names)


def test_no_more_than_a_few_are_kept(asked) -> None:
    names = sorted(registry(theories()))
    asked(names[:1])
    for n in range(1, 12):
        for _ in range(bases.OFTEN + 2):
            asked(names[n : n + 1])
    assert sum(map(len, bases._bases.values())) == bases.KEPT
