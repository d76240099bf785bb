"""An explanation shows what was chosen, where it lies, which rule made it, and what else there was."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tile_eg.extract.base import Refused
from tile_eg.frontend.text import load_text
from tile_eg.report.decisions import UNDECIDED, Runner, choices, decisions_text, open_choices, option
from tile_eg.report.differences import difference
from tile_eg.report.schedule_tree import schedule_text
from tile_eg.search.compiler import Lowered, lower

EXAMPLES = Path(__file__).parents[2] / "examples"


def lowered(name: str) -> Lowered:
    return lower(load_text((EXAMPLES / f"{name}.tile").read_text(), f"{name}.tile").instantiate())


@pytest.fixture(scope="module")
def gemm() -> Lowered:
    return lowered("gemm")


@pytest.fixture(scope="module")
def attention() -> Lowered:
    return lowered("flash_attention")


def lines(text: str, part: str) -> list[str]:
    return [line for line in text.splitlines() if part in line]


@pytest.mark.slow
def test_a_store_stands_on_the_line_that_stores(gemm: Lowered) -> None:
    [shown] = lines(schedule_text(gemm.schedule.schedule), "FixToGM")
    [emitted] = lines(gemm.source, "fixpipe-store-cast")
    assert shown.split()[-2] == "11"
    assert "gemm.tile:11" in emitted


@pytest.mark.slow
def test_every_step_of_the_schedule_has_its_line(attention: Lowered) -> None:
    steps = [step for step, _ in attention.schedule.schedule.walk()]
    assert len(lines(str(attention.schedule), "─ ")) == len(steps) + 1


@pytest.mark.slow
def test_a_step_says_what_it_computes_where_it_lies_and_who_made_it(gemm: Lowered) -> None:
    (line,) = lines(str(gemm.schedule), "GmToL1(B)")
    for part in ("─ b = GmToL1(B)", "AIC.MTE2", "L1 f16[", ", 256]", "gm-l1", " 8 "):
        assert part in line


@pytest.mark.slow
def test_a_product_is_made_by_its_own_rule_and_by_its_cut_for_l0(gemm: Lowered) -> None:
    (line,) = lines(str(gemm.schedule), "MmadAcc")
    assert "mmad-accumulate, l0-" in line


def test_a_loop_says_how_often_it_runs_and_a_tile_how_many_buffers_it_has(gemm: Lowered) -> None:
    (line,) = lines(str(gemm.schedule), "─ for k")
    assert " in 8" in line
    assert all(re.search(r" x [23] ", line) for line in lines(str(gemm.schedule), "GmToL1"))


@pytest.mark.slow
def test_shares_of_the_vector_cores_are_explained_where_there_are_some(gemm: Lowered, attention: Lowered) -> None:
    assert "half of the rows" not in str(gemm.schedule)
    assert "half of the rows" in str(attention.schedule)


def test_a_decision_names_what_else_was_offered(gemm: Lowered) -> None:
    (line,) = lines(decisions_text(gemm.schedule.schedule), "buffers of b in L1")
    assert sorted(line.split()[-3:]) == ["1,", "2", "3"]


def test_a_decision_whose_runner_up_lies_within_the_interval_is_marked_open(gemm: Lowered) -> None:
    schedule = gemm.schedule.schedule
    key = next(key for key, *_ in choices(schedule))
    close, far = (decisions_text(schedule, {key: Runner("other", us)}, 10.0, (9.9, 10.5)) for us in (10.4, 10.6))
    assert (", open" in close, UNDECIDED in close) == (True, True)
    assert "open" not in far


def test_what_was_chosen_is_never_among_the_other_offers(attention: Lowered) -> None:
    for node, others in open_choices(attention.schedule.schedule):
        assert others
        assert option(node, attention.schedule.schedule.graph) not in others


def test_what_begins_a_state_and_what_goes_on_with_it_are_told_apart(attention: Lowered) -> None:
    rows = decisions_text(attention.schedule.schedule).splitlines()
    told = [row[: row.index("  ", 2)].strip() for row in rows if "o in UB/rows" in row]
    assert {"start of o in UB/rows", "o in UB/rows from trip to trip", "o in UB/rows"} <= {*told}


def test_the_tree_and_the_decision_agree_on_a_skew(attention: Lowered) -> None:
    schedule = attention.schedule.schedule
    (decided,) = (option(n, schedule.graph) for n in schedule.nodes if n.op == "Skew")
    assert f", skew {decided}: up to " in schedule_text(schedule)


@pytest.mark.parametrize(("factor", "noted"), [(0.9, True), (1.0, False), (1.1, False)])
def test_a_runner_up_that_is_faster_says_how_to_get_it(gemm: Lowered, factor: float, noted: bool) -> None:
    runner = Runner("other", gemm.candidates[0].microseconds * factor)
    text = str(replace(gemm.explanation, runners={0: runner}))
    assert ("--effort full times more" in text) == noted


def test_alternatives_differ_and_say_in_what(gemm: Lowered) -> None:
    best, *others = [c.schedule for c in gemm.candidates]
    assert others
    for schedule in others:
        assert " instead of " in difference(schedule, best) or "other instructions: " in difference(schedule, best)


def test_each_alternative_has_its_times(gemm: Lowered) -> None:
    shown = lines(str(gemm.explanation), "cycles by the search model")
    assert len(shown) == len(gemm.candidates)
    assert shown[0].endswith(": chosen")


def test_a_schedule_whose_program_is_there_already_is_no_alternative(gemm: Lowered) -> None:
    twice = replace(gemm, ranked=(*gemm.ranked, gemm.ranked[1]))
    assert str(twice.explanation).split("\nmoves\n")[0] == str(gemm.explanation).split("\nmoves\n")[0]


def test_a_refusal_is_shown_with_its_reason(gemm: Lowered, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\nrefused\n" not in str(gemm.explanation)
    monkeypatch.setattr(gemm.extraction, "refused", [(123.0, Refused("capacity", "UB is too small"))])
    assert "refused\n  123 cycles by the search model: capacity: UB is too small" in str(gemm.explanation)


def test_the_tree_reads_in_the_order_of_issue(gemm: Lowered) -> None:
    text = schedule_text(gemm.schedule.schedule)
    assert text.index("ZeroL0C") < text.index("for k") < text.index("MmadAcc") < text.index("FixToGM")


@pytest.mark.slow
def test_an_instruction_shows_the_chain_of_rules_from_the_source() -> None:
    text = str(lowered("flash_attention_rows").schedule)
    assert "nest-bin > row-operand > v-rows" in text


def test_rules_of_one_chain_stand_in_the_order_in_which_they_build_on_each_other() -> None:
    assert "row-operand > div-rows > v-rows" in str(lowered("softmax").schedule)


def test_a_loop_in_another_form_shows_the_rule_that_gave_it(gemm: Lowered) -> None:
    shown = [schedule_text(c.schedule) for c in gemm.candidates]
    deeper = [line for text in shown for line in lines(text, "─ for k_by")]
    assert deeper and all(line.endswith("k-tiling") for line in deeper)


def test_every_second_of_a_compilation_is_accounted_for(gemm: Lowered) -> None:
    told = gemm.explanation
    assert 0 <= told.total - sum(told.timings.values()) < 0.2 * told.total
    assert "unattributed" in str(told)


def test_every_phase_shows_what_it_added(gemm: Lowered) -> None:
    (header,) = lines(str(gemm.explanation), "new rows")
    assert header.split()[-1] == "time"
    for phase in gemm.phases:
        assert lines(str(gemm.explanation), phase.name)
