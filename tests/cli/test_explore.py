"""The commands that look at what was not chosen, and the flags of the search."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import printed
from tile_eg.cli.app import run
from tile_eg.errors import TileError
from tile_eg.explore import schedule_number
from tile_eg.frontend.text import load_text

pytestmark = pytest.mark.slow(but=2)

EXAMPLES = Path(__file__).parents[2] / "examples"
SOFTMAX = str(EXAMPLES / "softmax.tile")
SMALL = ("--set", "M=64", "--set", "N=128")
Captured = pytest.CaptureFixture[str]


def refused(capsys: Captured, *arguments: str | Path) -> str:
    assert run([str(a) for a in arguments]) == 1
    return capsys.readouterr().err


def test_an_empty_question_is_refused(capsys: Captured) -> None:
    assert "names no decision" in refused(capsys, "explain", SOFTMAX, *SMALL, "--why-not", "")


@pytest.mark.slow
def test_a_schedule_that_there_is_not_is_told_with_all_that_there_are() -> None:
    kernel = load_text(Path(SOFTMAX).read_text(), "softmax.tile").instantiate({"M": 40, "N": 100})
    helps = set()
    for number in (0, 99):
        with pytest.raises(TileError, match=f"no schedule {number}") as error:
            schedule_number(number, kernel)
        helps.add(error.value.help)
    assert len(helps) == 1


def test_alternatives_are_listed_with_their_numbers(capsys: Captured) -> None:
    out = printed(capsys, "alternatives", SOFTMAX, *SMALL, "-k", "3")
    assert [line.split()[0] for line in out.split("\n\n")[0].splitlines()[1:]] == ["1", "2", "3"]


def test_a_pareto_front_is_listed(capsys: Captured) -> None:
    assert "predicted" in printed(capsys, "alternatives", SOFTMAX, *SMALL, "--pareto", "time,ub")


def test_emit_takes_the_number_of_a_schedule(capsys: Captured) -> None:
    assert printed(capsys, "emit", SOFTMAX, *SMALL, "--schedule", "2") != printed(capsys, "emit", SOFTMAX, *SMALL)


def test_the_first_schedule_is_what_emit_writes_anyway(capsys: Captured) -> None:
    assert printed(capsys, "emit", SOFTMAX, *SMALL, "--schedule", "1") == printed(capsys, "emit", SOFTMAX, *SMALL)


def test_run_takes_the_number_of_a_schedule(capsys: Captured) -> None:
    assert "simulator: good" in printed(capsys, "run", SOFTMAX, *SMALL, "--schedule", "2")


def test_a_program_has_no_other_schedules(tmp_path: Path, capsys: Captured) -> None:
    printed(capsys, "emit", SOFTMAX, *SMALL, "--program", "-o", tmp_path / "s.program")
    assert "has no others" in refused(capsys, "emit", tmp_path / "s.program", "--schedule", "2")
    assert "nothing is chosen in it" in refused(capsys, "alternatives", tmp_path / "s.program")


def test_two_schedules_are_shown_side_by_side(capsys: Captured) -> None:
    out = printed(capsys, "diff", SOFTMAX, "1", "2", *SMALL)
    assert "+++ schedule 2" in out


def test_explain_answers_why_not(capsys: Captured) -> None:
    assert "this is what was chosen" in printed(capsys, "explain", SOFTMAX, *SMALL, "--why-not", "rule=v-unary")


def test_a_rule_file_takes_part(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "mine.egg").write_text(
        '(rewrite (Un "exp" x) (Un "exp" (BinS "mul" x 1.0)) :ruleset algebra :name "mine" :law equal)'
    )
    question = ("--why-not", "rule=mine")
    assert "matched" in printed(capsys, "explain", SOFTMAX, *SMALL, "--rules", tmp_path / "mine.egg", *question)


def test_a_fault_in_a_rule_file_is_shown_in_its_line(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "mine.egg").write_text("; mine\n(rewrite (Un op x)")
    said = refused(capsys, "emit", SOFTMAX, "--rules", tmp_path / "mine.egg")
    assert "mine.egg:2:1" in said
    assert "^" in said


def test_an_unknown_rule_to_leave_out_is_refused_with_the_nearest(capsys: Captured) -> None:
    assert "did you mean `v-rows`" in refused(capsys, "emit", SOFTMAX, "--without", "v-row")


@pytest.mark.parametrize("effort", ["none", "quick", "full"])
def test_every_effort_runs_right(effort: str, capsys: Captured) -> None:
    assert "simulator: good" in printed(capsys, "run", SOFTMAX, *SMALL, "--effort", effort)


def test_exact_mathematics_runs_right(capsys: Captured) -> None:
    assert "simulator: good" in printed(capsys, "run", SOFTMAX, *SMALL, "--exact-math")


@pytest.mark.long
def test_a_budget_that_was_reached_is_told_and_the_kernel_is_there(capsys: Captured) -> None:
    """Between too little fuel for any kernel and enough for all rules there is some."""
    for fuel in range(100, 400, 10):
        code = run(["emit", SOFTMAX, *SMALL, "--fuel", str(fuel)])
        out, error = capsys.readouterr()
        if code == 0:
            break
    assert "softmax" in out
    assert f"stopped at {fuel} new rows; the best of what was found is used" in error


@pytest.mark.few(2)
@pytest.mark.parametrize("extractor", ["exact", "beam", "greedy", "random", "worst"])
def test_every_extractor_runs_right(extractor: str, capsys: Captured) -> None:
    assert "simulator: good" in printed(capsys, "run", SOFTMAX, *SMALL, "--extractor", extractor)


def test_an_unknown_extractor_is_refused_with_the_known_ones(capsys: Captured) -> None:
    assert "beam, exact, greedy, random, worst" in refused(capsys, "emit", SOFTMAX, "--extractor", "fast")
