"""egglog's own names may collide with each other; with the names that it gets from us they cannot."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tile_eg
from tile_eg.errors import TileError
from tile_eg.rules import native, read_theory, theories
from tile_eg.rules.naming import THEIRS, confusable, spelled, unspelled
from tile_eg.rules.sexpr import heads, parse
from tile_eg.rules.user import checked

Run = Callable[[Any, str], list]
COUNTS = range(26)
"""By how much the counter of one name may be ahead: enough for every case below to go wrong without the spelling."""
TIMES = 12
PAIRS = {
    "globals": (
        "(datatype M (A i64) (P M M)) (let $f1 (A 1)) (let $f11 (A 11))",
        "(let $t $f1)",
        "(let $t (P $f11 $f1)) (check (= $t (P (A 11) (A 1))))",
    ),
    "globals in a rule": (
        "(datatype M (A i64)) (relation R (M M)) (relation Q ()) (Q) (ruleset r) (let $f1 (A 1)) (let $f11 (A 11))",
        "(let $t $f1)",
        '(rule ((Q)) ((R $f11 $f1)) :ruleset r :name "x") (run r 1) (check (R (A 11) (A 1)))',
    ),
    "constructors that are made": (
        "(datatype M (F i64) (F1 i64) (P M M))",
        "(F 3)",
        "(let $t (P (F1 11) (F 1))) (check (= $t (P (F1 11) (F 1))))",
    ),
    "constructors that are looked for": (
        "(datatype M (F i64) (F1 i64) (P M M)) (P (F1 11) (F 1))",
        "(F 3)",
        "(check (P (F1 11) (F 1)))",
    ),
    "functions": (
        "(function H (i64) i64 :no-merge) (function H1 (i64) i64 :no-merge) (relation R (i64 i64))"
        " (set (H 1) 1) (set (H1 1) 11) (R 11 1)",
        "(check (= 1 (H 1)))",
        "(check (R (H1 1) (H 1)))",
    ),
    "anything and a constructor": (
        "(datatype M (A i64) (_1 i64) (P M M)) (P (_1 11) (A 1))",
        "(check (P _ _))",
        "(check (P (_1 11) _))",
    ),
}
"""What there is; a command that moves the counter of one name on; a command with both names, which has to hold."""


def plainly(egraph: Any, commands: str) -> list:
    return egraph.run_program(*egraph.parse_program(commands))


def holds(run: Run, there: str, mover: str, command: str) -> bool:
    """Whether a command holds each time, however far the counter of one of its names is ahead."""
    return all(_holds_behind(run, there, mover, command, ahead) for ahead in COUNTS)


def _holds_behind(run: Run, there: str, mover: str, command: str, ahead: int) -> bool:
    egraph = native.load().EGraph()
    run(egraph, there)
    try:
        for text in [mover] * ahead + [command] * TIMES:
            run(egraph, f"(push) {text} (pop)")
    except Exception:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("names", PAIRS)
def test_egglog_takes_one_name_for_another(names: str) -> None:
    """The fault that the spelling is for. Where an egglog without it is in use, the spelling may go."""
    assert not holds(plainly, *PAIRS[names])


@pytest.mark.slow
@pytest.mark.parametrize("names", PAIRS)
def test_egglog_keeps_names_apart_that_end_in_no_digit(names: str) -> None:
    assert holds(native.run, *PAIRS[names])


@pytest.mark.slow
def test_rule_variables_make_no_names() -> None:
    there = "(datatype M (F i64) (P M M)) (relation R (i64 i64)) (P (F 11) (F 1)) (ruleset r)"
    rule = '(rule ((P (F F1) (F F2))) ((let F3 (F F1)) (R F1 F2)) :ruleset r :name "x") (run r 1) (check (R 11 1))'
    assert holds(plainly, there, "(F 3)", rule)


def test_no_variable_can_have_a_name_of_egglogs() -> None:
    with pytest.raises(Exception, match="reserved for egglog internals"):
        plainly(native.load().EGraph(), "(datatype M (F i64)) (relation R (i64)) (rule ((= x (F @F))) ((R @F)))")


@pytest.mark.parametrize("name", [n for n in THEIRS if n not in ("i64", "f64")])
def test_what_is_egglogs_is_spelled_as_it_is(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"Primitive {name} already declared"):
        native.run(native.load().EGraph(), f"(function {name} (i64) i64 :no-merge)")


@pytest.mark.parametrize(
    ("written", "got"),
    [
        ("(let $f1 (A 1))", "(let $f1_ (A 1))"),
        ("(P x2 x2_ x_2)", "(P x2_ x2__ x_2_)"),
        ('(Ix "k1") ; l0\n(L0)', '(Ix "k1") ; l0\n(L0_)'),
        ("(K 1.5e-38 -3 1e+3 i64)", "(K 1.5e-38 -3 1e+3 i64)"),
        ("(f a1)(a1)", "(f a1_)(a1_)"),
        ("(1st 1e x1e3)", "(1st 1e x1e3_)"),
    ],
)
def test_a_name_that_ends_in_a_digit_is_longer_for_egglog(written: str, got: str) -> None:
    assert spelled(written) == got
    assert unspelled(got) == written


NAMES = st.from_regex(r"[$_a-c12]{1,5}", fullmatch=True).filter(lambda n: not n.isdigit())


@pytest.mark.slow
@given(NAMES, NAMES)
def test_no_name_as_egglog_gets_it_is_another_and_a_number(one: str, other: str) -> None:
    assert unspelled(spelled(one)) == one
    assert not re.fullmatch(re.escape(spelled(one)) + r"\d+", spelled(other))
    assert confusable([one, other]) is None


def test_the_rules_of_the_project_have_no_names_that_egglog_could_confuse() -> None:
    assert confusable(set().union(*(heads(form) for t in theories() for text in t.text for form in parse(text)))) is None


def test_a_theory_with_such_names_is_refused() -> None:
    with pytest.raises(ValueError, match="egglog may take log for log2"):
        read_theory("t", '(rule ((= x (log a)) (= y (log2 a))) () :ruleset r :name "n")', {})


def test_nothing_but_the_door_talks_to_egglog() -> None:
    root = Path(tile_eg.__file__).parent
    words = re.compile(r"\.run_program\(|\.freeze\(\)\.functions\b(?!\.values)")
    talking = {f.name for f in root.rglob("*.py") if words.search(f.read_text())}
    assert talking == {"native.py"}


TWO_NAMES = """
(relation Seen (V)) (relation Seen1 (V))
(rule ((= v1 (Un "exp" x1))) ((Seen v1) (Seen1 x1)) :ruleset algebra :name "see" :law fact)
(rule ((Seen v1) (Seen1 {})) ((union v1 v1)) :ruleset algebra :name "saw" :law equal)
"""


@pytest.mark.slow
def test_a_users_names_may_end_in_digits() -> None:
    see, saw = checked("my.egg", TWO_NAMES.format("x1")).rules
    assert "Seen1(x1)" in see.maths and "_" not in see.maths + saw.maths


@pytest.mark.slow
def test_a_fault_of_type_shows_the_name_as_it_was_written() -> None:
    with pytest.raises(TileError) as caught:
        checked("my.egg", TWO_NAMES.format("(Un2 x1)"))
    error = caught.value
    assert error.span and error.span.line == 4
    assert "Un2" in error.message and "Un2_" not in str(error)


def test_operations_of_egglogs_keep_their_names_and_go_wrong() -> None:
    one = "(bigrat (bigint 1) (bigint 1))"
    there = f"(relation Q (BigRat)) (Q {one}) (relation R (i64 BigRat)) (ruleset r)"
    mover = '(rule ((Q x)) ((Q (log x))) :ruleset r :name "m")'
    both = '(rule ((Q x)) ((R (log2 8) (log x))) :ruleset r :name "n") (run r 1) (check (R 3 y))'
    assert not holds(native.run, there, mover, both)


def test_two_operations_of_egglogs_that_it_could_confuse_are_refused_with_their_line() -> None:
    text = '\n(rule ((= x (log a)) (= y (log2 a))) ((union x x)) :ruleset algebra :name "n" :law equal)'
    with pytest.raises(TileError, match="egglog may take `log` for `log2`") as caught:
        checked("my.egg", text)
    assert caught.value.span and caught.value.span.line == 2


@pytest.mark.parametrize("name", ["$f1", "@f"])
def test_names_of_kernels_and_of_egglog_are_refused(name: str) -> None:
    with pytest.raises(TileError, match="is taken") as caught:
        checked("my.egg", f"(relation {name} (V))")
    assert caught.value.span and caught.value.span.column == 11
