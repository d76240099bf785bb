"""A profile runs each rule by itself, and finds what the phases find."""

from __future__ import annotations

import pytest

from tests.extract.kernels import CHIP, GATED, graph_of, kernel
from tile_eg.egraph.profile import NOTHING, profile
from tile_eg.frontend.ssa import to_values
from tile_eg.rules import registry, selected


@pytest.mark.slow
def test_every_rule_has_its_costs() -> None:
    found = profile(to_values(kernel(GATED)), CHIP, selected())
    assert {r.name for r in found} == registry().keys()
    assert all(r.seconds >= 0 for r in found)


@pytest.mark.slow
def test_rules_run_by_themselves_match_what_they_match_together() -> None:
    alone = {r.name for r in profile(to_values(kernel(GATED)), CHIP, selected()) if r.matches}
    together = {name for phase in graph_of(GATED).phases for name, n in phase.matches.items() if n}
    assert alone == together


@pytest.mark.slow
def test_the_growth_of_all_rules_is_that_of_the_phases() -> None:
    grown = sum(r.rows for r in profile(to_values(kernel(GATED)), CHIP, selected()))
    assert grown == sum(phase.added for phase in graph_of(GATED).phases)


@pytest.mark.slow
def test_a_rule_that_is_left_out_is_not_profiled() -> None:
    held = selected(without=frozenset({"v-unary"}))
    assert "v-unary" not in {r.name for r in profile(to_values(kernel(GATED)), CHIP, held)}


def test_no_rule_is_called_as_the_empty_ruleset_is() -> None:
    assert NOTHING not in {r.ruleset for r in registry().values()}
