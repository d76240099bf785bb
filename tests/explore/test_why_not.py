"""A decision that was not taken is taken, and the answer is its price, or why it cannot be."""

from __future__ import annotations

from functools import cache

import pytest

from tests.explore.kernels import kernel, lowered
from tile_eg.errors import TileError
from tile_eg.explore import explained, runners, why_not
from tile_eg.explore.otherwise import Otherwise, alike
from tile_eg.explore.runners import flips
from tile_eg.explore.why_not import FORMS
from tile_eg.report.decisions import GRID, UNDECIDED, Runner, distinct_subject, open_choices, option
from tile_eg.rules import registry
from tile_eg.search import search_options
from tile_eg.search.compiler import lower


def answer(name: str, question: str, **sizes: int) -> str:
    return str(why_not(lowered(name, **sizes), question))


def test_times_have_their_intervals_and_what_lies_within_is_open() -> None:
    chosen, _, less = answer("gemm", "a.buffers=2").splitlines()[:3]
    assert chosen == "chosen: 8.45 us, 8.44 to 11.3"
    assert "8.45 to 11.3 (the same)" in less and less.endswith(UNDECIDED)


@pytest.mark.parametrize("question", ["buffers=1", "ring=1", "stages = 1"])
def test_another_number_of_buffers_has_its_price_by_any_of_its_names(question: str) -> None:
    said = answer("gemm", question)
    assert "buffers of b in L1, loop k: 1\n" in said
    assert "buffers of b in L1: 1 instead of 3" in said and " (+" in said


@pytest.mark.slow
def test_a_question_may_name_one_loop() -> None:
    said = answer("gemm", "k.buffers=2")
    assert "buffers of a in L1, loop k: 2\n" in said and "buffers of b in L1, loop k: 2\n" in said
    assert "k_by" not in said.split("instead")[0]


def test_a_question_may_name_one_tile() -> None:
    said = answer("gemm", "a.buffers=2")
    assert "buffers of a in L1, loop k: 2\n" in said and "of b" not in said


def test_a_move_of_what_was_chosen_is_told_to_be_in_it() -> None:
    assert "made in the search: " in answer("gemm", "shuffle-k") and "which is what was chosen" in answer("gemm", "shuffle-k")


@pytest.mark.slow
def test_an_offer_of_a_move_is_asked_for_by_its_number() -> None:
    assert answer("gemm", "split-k=2") == answer("gemm", "split-k=2 parts")


@pytest.mark.slow
def test_an_unknown_loop_is_refused_with_those_there_are() -> None:
    with pytest.raises(TileError, match="known here: .*j"):
        answer("flash_attention", "x.buffers=2")


def test_what_was_chosen_is_told_to_be() -> None:
    assert "this is what was chosen" in answer("gemm", "buffers=3")


def test_what_no_rule_offers_is_told_with_what_there_is() -> None:
    assert "not offered; there is 1, 2, 3" in answer("gemm", "buffers=7")


@pytest.mark.slow
def test_another_skew_has_its_price() -> None:
    assert "skew of loop j: 0 instead of" in answer("flash_attention", "skew=0")


def test_other_steps_of_a_product_have_their_price() -> None:
    assert "128 x 128 x 128 instead of" in answer("gemm", "L0 128,128,128")


def test_steps_that_do_not_fit_are_not_offered() -> None:
    assert "not offered; there is " in answer("gemm", "L0 512,512,512")


def test_a_rule_is_asked_for_by_its_name() -> None:
    assert "store to C: UBToGM" in answer("gemm", "rule=ub-store")


def test_a_rule_that_matched_nothing_is_told_with_its_maths() -> None:
    assert registry()["v-mul-add"].maths in answer("gemm", "rule=v-mul-add")


def test_a_rule_of_values_is_told_to_make_no_instruction() -> None:
    assert "--without row-operand" in answer("flash_attention", "rule=row-operand")


def test_an_unknown_rule_is_told_with_the_nearest() -> None:
    with pytest.raises(TileError, match="did you mean `v-rows`"):
        answer("gemm", "rule=v-row")


def test_the_grid_of_few_tiles_has_no_alternative() -> None:
    assert "not offered; there is grid=blocks (a block a tile)" in answer("gemm", "grid=24,3,0")


@pytest.mark.slow
def test_another_grid_has_its_price() -> None:
    said = answer("gemm", "grid=blocks", M=2048, N=2048, K=256)
    assert "grid: a block a tile" in said
    assert " (" in said


def test_what_is_no_question_is_refused_with_the_forms() -> None:
    with pytest.raises(TileError) as caught:
        answer("gemm", "faster please")
    for form in FORMS:
        assert form in str(caught.value)


@pytest.mark.slow
def test_a_choice_that_overflows_a_memory_is_refused_with_what_lives_there() -> None:
    said = answer("online_softmax", "store to Y=UBToGM", BM=160)
    assert "refused: it needs " in said
    assert "bytes of UB at once; 910B2 has 188,160" in said
    assert "x: f32[160, 256] x 1 = 163,840 bytes, line 7" in said


@pytest.mark.slow
def test_a_decision_is_asked_for_as_the_table_names_it() -> None:
    assert "q in L1: reloaded instead of resident" in answer("flash_attention", "q in L1=reloaded")


@pytest.mark.slow
def test_one_of_several_decisions_of_a_line_is_asked_for_by_the_name_of_its_result() -> None:
    schedule = lowered("layer_norm").candidates[0].schedule
    names = {distinct_subject(schedule, n): option(n, schedule.graph) for n, _ in open_choices(schedule)}
    about = next(name for name in names if name.endswith(")"))
    assert "this is what was chosen" in str(why_not(lowered("layer_norm"), f"{about}={names[about]}"))


def test_a_decision_that_the_table_does_not_have_is_refused_with_the_nearest() -> None:
    with pytest.raises(TileError, match="did you mean `store to C`"):
        answer("gemm", "store to D=UBToGM")
    with pytest.raises(TileError, match="did you mean `buffers`"):
        answer("gemm", "buffer=3")


@cache
def found_runners(name: str) -> dict[int, Runner]:
    return runners(lowered(name))


@pytest.mark.long
@pytest.mark.slow
def test_every_open_decision_has_a_runner_up_or_a_reason() -> None:
    attention = lowered("flash_attention")
    found = found_runners("flash_attention")
    assert {node.cls for node, _ in open_choices(attention.candidates[0].schedule)} <= found.keys()
    assert all(r.microseconds is not None or r.why for r in found.values())


@pytest.mark.slow
def test_a_runner_up_is_legal_and_planned() -> None:
    assert all(r.microseconds is None or r.microseconds > 0 for r in found_runners("gemm").values())


@pytest.mark.slow
def test_the_grid_has_its_runner_up_too() -> None:
    found = runners(lowered("gemm", M=2048, N=2048, K=256))
    assert found[GRID].microseconds


@pytest.mark.slow
def test_an_explanation_shows_the_runners_up_and_what_they_cost() -> None:
    text = str(explained(lowered("gemm")))
    assert "runner-up" in text
    assert "+" in text.split("decisions\n")[1].split("alternatives")[0]


@pytest.mark.slow
def test_a_rule_that_was_left_out_is_told_to_be() -> None:
    without = lower(kernel("gemm"), search=search_options(without=["ub-store"]))
    assert "left out" in str(why_not(without, "rule=ub-store"))


@pytest.mark.slow
def test_runners_up_of_a_persistent_kernel_are_told_from_its_own_time() -> None:
    """They are timed with a block for each tile, which takes longer: only the difference counts."""
    large = lowered("gemm", M=2048, N=2048, K=256)
    assert large.candidates[0].schedule.persistent
    same = (c for c in large.candidates if alike(c.schedule, large.candidates[0].schedule))
    plain = next(c for c in same if not c.schedule.persistent)
    cheapest = min(r.microseconds for r in runners(large).values() if r.microseconds is not None)
    assert cheapest < plain.microseconds


def test_a_move_that_is_asked_for_as_a_rule_is_told_to_be_one() -> None:
    with pytest.raises(TileError, match="there is no rule 'packed-operand'") as told:
        answer("gemm", "rule=packed-operand")
    assert told.value.help == "it is a move of the search: --why-not packed-operand"


@pytest.mark.slow
def test_a_runner_up_costs_no_more_than_a_schedule_of_the_search_that_decides_it_otherwise() -> None:
    chosen, *others = lowered("flash_attention").candidates
    graph, found = chosen.schedule.graph, found_runners("flash_attention")
    for node, _ in open_choices(chosen.schedule):
        for other in (c for c in others if c.schedule.graph is graph):
            taken = {option(n, graph) for n in other.schedule.nodes if n.cls == node.cls} - {option(node, graph)}
            assert not taken or (found[node.cls].microseconds or 0.0) <= other.microseconds


@pytest.mark.slow
def test_a_runner_up_is_never_what_was_chosen_though_it_is_sought_beside_another_grid_of_other_steps() -> None:
    _, other, *_ = lowered("gemm").candidates
    graph = other.schedule.graph
    chosen = {n.cls: option(n, graph) for n, _ in open_choices(other.schedule)}
    assert all(runner.option != chosen[cls] for cls, runner, _ in flips(Otherwise(lowered("gemm")), other))
