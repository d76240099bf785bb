"""Saturation: phases with budgets, facts that agree, a rule to blame where they do not."""

from __future__ import annotations

import sys

import pytest

from tests.extract.kernels import CHIP, GATED, ONE_VALUE_TWO_TENSORS, TRICKY, graph_made_now, graph_of, kernel
from tile_eg.egraph import Budget, saturate
from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.rules import Theory, read_theory, theories

pytestmark = pytest.mark.slow

saturation = sys.modules["tile_eg.egraph.saturate"]


def with_rule(text: str) -> tuple[Theory, ...]:
    sorts: dict[str, str] = {"BinS": "V"}
    return (*theories(), read_theory("99_mine", text, sorts))


@pytest.fixture
def wrong_rule(monkeypatch):
    """A rule whose sides differ in shape, loaded beside the others."""
    text = '(rewrite (Un "exp" x) (Red 1 "sum" x) :ruleset algebra :name "shrink" :law equal)'
    mine = with_rule(text)
    monkeypatch.setattr(saturation, "theories", lambda: mine)


@pytest.mark.slow
def test_two_values_of_different_shape_stop_the_compilation_with_the_rules_name(wrong_rule):
    with pytest.raises(RuntimeError, match="rule 'shrink' joined two values of different"):
        graph_made_now(ONE_VALUE_TWO_TENSORS)


def test_the_next_kernel_is_not_harmed_by_a_rule_that_failed(wrong_rule, monkeypatch):
    with pytest.raises(RuntimeError):
        graph_made_now(ONE_VALUE_TWO_TENSORS)
    monkeypatch.setattr(saturation, "theories", theories)
    assert graph_made_now(ONE_VALUE_TWO_TENSORS).nodes


@pytest.mark.few(8)
@pytest.mark.parametrize("name", sorted(TRICKY))
def test_every_phase_ends_by_itself(name):
    assert [p.name for p in graph_of(TRICKY[name]).phases if p.stopped_by] == []


def test_a_budget_that_is_reached_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Budget, "for_values", lambda budget, count: budget)
    graph = saturate(to_values(kernel(ONE_VALUE_TWO_TENSORS)), CHIP, Budget(rounds=3))
    assert any(p.stopped_by == "3 rounds" for p in graph.phases)


CHAIN = """
kernel k(A: f16[32, 64]) -> C: f16[32, 64] {
  grid bx = 1
  shared a: f16[32, 64]
  a = A[0, 0]
%s
  C[0, 0] = a
}
"""


def test_a_chain_of_more_values_than_a_phase_has_rounds_is_placed_to_its_end():
    chain = CHAIN % "\n".join(f"  a = a + {n}" for n in range(1, Budget().rounds + 2))
    assert [p.name for p in saturate(to_values(kernel(chain)), CHIP).phases if p.stopped_by] == []


ENDLESS = """
(relation Counted (i64))
(Counted 0)
(rule ((Counted n)) ((Counted (+ n 1))) :ruleset facts :name "count-on" :law fact)
"""


def test_rules_without_an_end_are_stopped_by_the_rows_that_they_add():
    held = with_rule(ENDLESS)
    with pytest.raises(TileError, match="the phase 'facts' was stopped at 2000 new rows") as caught:
        saturate(to_values(kernel(ONE_VALUE_TWO_TENSORS)), CHIP, Budget(rows=2000, matches=100), held)
    assert "rule 'count-on' matched most often" in caught.value.help


def test_matches_are_counted_by_rule():
    phase = graph_of(GATED).phases[-1]
    assert phase.matches["mmad-accumulate"] >= 2


def test_a_view_does_not_depend_on_what_was_compiled_before():
    first = [(n.op, n.children) for n in graph_made_now(GATED).nodes]
    graph_made_now(ONE_VALUE_TWO_TENSORS)
    assert [(n.op, n.children) for n in graph_made_now(GATED).nodes] == first
