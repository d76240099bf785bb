"""A report of a run says good only where the numbers are right and no rule of the machine was broken."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest

from tile_eg.chips import load_chip
from tile_eg.ir.program import Program
from tile_eg.report.compare import Comparison
from tile_eg.report.cost import Cost
from tile_eg.report.memory import MemoryMap
from tile_eg.report.run import RunReport
from tile_eg.simulator.findings import Counts, Finding
from tile_eg.timeline.engine import Timeline

PROGRAM = Program("k", "910B2", "AIV_ONLY", (), 50, False, 0, (), (), ())
TIMELINE = Timeline(
    "k", "910B2", "AIV_ONLY", 50, 2, 1800.0, 11.0, 10.0, 1800.0, 900.0, 0.0, {("AIV", "V"): 450.0, ("AIV", "MTE3"): 0.0},
    {"GM->UB": 4096.0}, "AIV.V", (), False,
)  # fmt: skip
RIGHT, WRONG = Comparison("C", 1e-4, 1e-3, 0.2501, 0.25, (2, 3), 64), Comparison("C", 0.5, 1e-3, 0.75, 0.25, (2, 3), 64, wrong=7)
RACE = Finding("race", "two writes", 1)


def report(findings: list[Finding], comparisons: list[Comparison] | None, unwritten: tuple[str, ...] = ()) -> RunReport:
    memory = MemoryMap(PROGRAM, load_chip("910B2"))
    counts = Counts({"Add": 3}, {"GM->UB": 4096})
    compared = None if comparisons is None else {"uniform": comparisons}
    return RunReport(PROGRAM, Cost(TIMELINE), memory, findings, counts, compared, "Add(c, a, b);\n", unwritten=unwritten)


@pytest.mark.parametrize(
    ("findings", "comparisons", "good", "words"),
    [
        ([], [RIGHT], True, "simulator: good"),
        ([], [RIGHT, WRONG], False, "BAD, the numbers differ"),
        ([RACE], [RIGHT], False, "BAD, 1 finding"),
        ([RACE, RACE], None, False, "BAD, 2 findings"),
        ([], None, True, "compared with nothing"),
    ],
)
def test_the_verdict(findings: list[Finding], comparisons: list[Comparison] | None, good: bool, words: str) -> None:
    shown = report(findings, comparisons)
    assert shown.good is good
    assert words in str(shown).splitlines()[0]


def test_the_largest_error_is_shown_with_its_place() -> None:
    assert "C uniform 5.00e-01 1.00e-03 0.25 C[2, 3] BAD, 7 of 64 elements" in " ".join(str(report([], [WRONG])).split())


def test_a_result_that_is_no_number_is_shown_as_what_it_is() -> None:
    wrong = replace(WRONG, error=inf, got=nan, wrong=1)
    assert "C uniform is nan 1.00e-03 0.25 C[2, 3] BAD, 1 of 64 elements" in " ".join(str(report([], [wrong])).split())


def test_elements_that_are_nan_as_they_should_be_are_said() -> None:
    shown = report([], [replace(RIGHT, nan=3)])
    assert shown.good
    assert "C, uniform inputs: 3 of 64 elements are NaN, and should be" in str(shown)


def test_an_output_without_any_bound_is_not_called_good() -> None:
    shown = str(report([], [Comparison("C", 0.0, inf, 1.0, 1.0, (0, 0), 64, unbounded=64)]))
    assert "C uniform 0 - - everywhere not compared" in " ".join(shown.split())


def test_a_kernel_that_leaves_elements_unwritten_is_bad_and_the_text_is_not() -> None:
    shown = report([], [RIGHT], ("error: C[3] is never written",))
    assert (shown.good, shown.ours_good) == (False, True)
    assert "BAD, the kernel does not write all of its outputs\n\nerror: C[3] is never written" in str(shown)
    assert shown.data()["unwritten"] == ["error: C[3] is never written"]


def test_a_finding_is_shown_with_its_statement() -> None:
    assert "1 | Add(c, a, b);" in str(report([RACE], [RIGHT]))


def test_bytes_are_those_that_the_simulator_counted() -> None:
    assert "GM -> UB 4 KiB" in " ".join(str(report([], [RIGHT])).split())


def test_plain_values_say_the_same() -> None:
    data = report([RACE], [RIGHT]).data()
    assert (data["good"], data["moved_bytes"], data["instructions"]) == (False, {"GM->UB": 4096}, {"Add": 3})
    counts = {"size": 64, "wrong": 0, "nan": 0, "unbounded": 0, "not_computed": 0}
    numbers = {"error": 1e-4, "allowed": 1e-3, "got": 0.2501, "want": 0.25}
    assert data["outputs"] == [{"name": "C", "inputs": "uniform", **numbers, "where": [2, 3], **counts, "good": True}]


def test_the_predicted_time_says_what_it_consists_of() -> None:
    assert Cost(TIMELINE).headline() == "predicted 11 us on 910B2 (10 us of it launch; 50 blocks in 2 waves; bound by AIV.V)"


@pytest.mark.parametrize(
    ("interval", "said"),
    [((9.5, 12.0), "11 us, 9.5 to 12,"), ((0.9, 12.0), "11 us, 900 ns to 12 us,"), ((11.0, 11.0), "11 us"), (None, "11 us")],
)
def test_the_predicted_time_has_its_interval_beside_it(interval: tuple[float, float] | None, said: str) -> None:
    assert Cost(TIMELINE, interval).headline().startswith(f"predicted {said} on 910B2")


def test_pipes_that_did_nothing_are_left_out() -> None:
    assert "MTE3" not in Cost(TIMELINE).pipes()
    assert "AIV V 450 50 %" in " ".join(Cost(TIMELINE).pipes().split())
