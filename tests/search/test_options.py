"""The options of the search do what they say: rules come and go, effort buys schedules, budgets end phases and are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.rules import INEXACT, registry
from tile_eg.search import EFFORTS, search_options
from tile_eg.search.compiler import Lowered, lower

EXAMPLES = Path(__file__).parents[2] / "examples"
SIGMOID = """
kernel gate[M=32, N=64](A: f32[M, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f32[M, N]
  a = A[0, 0]
  a = sigmoid(a)
  C[0, 0] = a
}
"""


def example(name: str, **sizes: int) -> Kernel:
    return load_text((EXAMPLES / f"{name}.tile").read_text(), name).instantiate(sizes)


def rules_of(lowered: Lowered) -> set[str]:
    return {rule for step, _ in lowered.candidates[0].schedule.walk() for rule in step.node.rules}


@pytest.mark.slow
def test_a_rule_that_is_left_out_makes_no_instruction() -> None:
    softmax = example("softmax")
    assert "v-axpy" not in rules_of(lower(softmax, search=search_options(without=["v-axpy"])))
    assert "v-unary" in rules_of(lower(softmax))


@pytest.mark.slow
def test_without_a_rule_that_is_needed_the_error_names_it() -> None:
    with pytest.raises(TileError, match="left out, and matched with all rules: v-unary"):
        lower(example("softmax"), search=search_options(without=["v-unary"]))


def test_an_unknown_rule_to_leave_out_is_told_with_the_nearest() -> None:
    with pytest.raises(TileError, match="did you mean `v-rows`"):
        search_options(without=["v-row"])


def test_a_fact_cannot_be_left_out() -> None:
    with pytest.raises(TileError, match="is a fact"):
        search_options(without=["shape-load"])


def test_exact_mathematics_keeps_only_rules_that_hold_bit_for_bit() -> None:
    left_out = search_options(exact_math=True).left_out
    assert left_out == {r.name for r in registry().values() if r.law in INEXACT}
    assert left_out


@pytest.mark.slow
def test_exact_mathematics_uses_no_rounding_rule() -> None:
    exact = lower(example("softmax"), search=search_options(exact_math=True))
    used = {rule for phase in exact.phases for rule, n in phase.matches.items() if n}
    assert not used & search_options(exact_math=True).left_out


@pytest.mark.slow
def test_what_cannot_be_computed_exactly_is_refused_with_the_rules_that_would() -> None:
    kernel = load_text(SIGMOID, "gate.tile").instantiate()
    with pytest.raises(TileError, match="sigmoid"):
        lower(kernel, search=search_options(exact_math=True))


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(TileError, match="unknown effort 'ful'"):
        search_options(effort="ful")


@pytest.mark.slow
@pytest.mark.parametrize("effort", EFFORTS)
def test_every_effort_plans_at_most_its_number_of_schedules(effort: str) -> None:
    found = lower(example("gemm"), search=search_options(effort=effort)).extraction
    assert 1 <= len(found.schedules) <= EFFORTS[effort].schedules


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm", pytest.param("flash_attention", marks=pytest.mark.long), "softmax"])
def test_more_effort_never_gives_a_slower_kernel(name: str) -> None:
    none, quick, full = (lower(example(name), search=search_options(effort=e)) for e in EFFORTS)
    times = [x.candidates[0].microseconds for x in (none, quick, full)]
    assert times == sorted(times, reverse=True)


@pytest.mark.slow
def test_no_effort_solves_no_optimisation() -> None:
    assert lower(example("gemm"), search=search_options(effort="none")).extraction.extractor == "greedy"


@pytest.mark.slow
def test_a_phase_that_runs_out_of_fuel_says_so() -> None:
    phases = lower(example("gemm"), search=search_options(fuel=900)).phases
    assert [p.name for p in phases if p.stopped_by] == []
    with pytest.raises(TileError, match="stopped at 20 new rows"):
        lower(example("gemm"), search=search_options(fuel=20))


@pytest.mark.slow
def test_too_little_fuel_for_any_schedule_asks_for_more() -> None:
    with pytest.raises(TileError) as error:
        lower(example("gemm"), search=search_options(fuel=20))
    assert "--fuel" in error.value.help


@pytest.mark.slow
def test_what_no_rule_computes_is_shown_at_its_line() -> None:
    with pytest.raises(TileError) as error:
        lower(example("softmax"), search=search_options(without=["v-reduce", "v-reduce-blocks", "v-reduce-chunks"]))
    assert "m = rowmax(x)\n" in str(error.value) and "`max` of 1 x 32 f32, line 7" in error.value.help


@pytest.mark.slow
def test_what_cannot_be_computed_is_the_operand_and_not_what_is_made_of_it() -> None:
    with pytest.raises(TileError) as error:
        lower(example("softmax"), search=search_options(without=["v-unary"]))
    assert "`exp` of" in error.value.help


@pytest.mark.parametrize("options", [{"fuel": 0}, {"k": 0}])
def test_numbers_below_one_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(TileError, match="at least 1"):
        search_options(**options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_rule_of_the_users_takes_part_in_the_search() -> None:
    mine = '(rewrite (Un "exp" x) (Un "exp" (BinS "mul" x 1.0)) :ruleset algebra :name "slow-exp" :law equal)'
    phases = lower(example("softmax"), search=search_options(rules=[mine])).phases
    assert any(p.matches.get("slow-exp") for p in phases)


@pytest.mark.slow
def test_a_wrong_rule_that_only_a_kernel_shows_is_told_by_its_name() -> None:
    """Facts see what the trial of a rule's sides cannot follow: here a state of a loop."""
    when = '(= v (Un "exp" x)) (StElem l k i b) (= c (cols v)) (!= c 1)'
    wrong = f'(rule ({when}) ((union v (Arg l k))) :ruleset algebra :name "odd" :law equal)'
    with pytest.raises(TileError, match="rule 'odd' joined two values"):
        lower(example("flash_attention"), search=search_options(rules=[wrong]))
