"""A user's own rules are read as ours are, and whatever is wrong with them is told with its line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from tile_eg.errors import TileError
from tile_eg.rules import LAWS, registry
from tile_eg.rules.sexpr import SyntaxFault, parse, parse_placed
from tile_eg.rules.shapes import difference
from tile_eg.rules.user import add, added, checked, read_theory_of, remove

SWAP = '(rewrite (Bin "add" x y) (Bin "add" y x) :ruleset algebra :name "swap" :law equal)'


def refused(text: str) -> TileError:
    with pytest.raises(TileError) as caught:
        checked("my.egg", text)
    return caught.value


@pytest.mark.slow
def test_a_rule_of_the_users_has_a_line_of_maths_and_a_law() -> None:
    (rule,) = checked("my.egg", SWAP).rules
    assert (rule.name, rule.law, rule.maths) == ("swap", "equal", "(x + y) = (y + x)")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("; a comment\n(rewrite (Un", 2, "never closed"),
        ("(relation Q (V)))", 1, "closes nothing"),
        ('(rewrite "a) b)', 1, "does not end"),
        ("foo", 1, "`foo` stands outside"),
        ("\n(rewrte x y)", 2, "`rewrte` is nothing that a theory holds"),
        ("(rewrite (Un op x) :name)", 1, "this is no rewrite"),
        ("(rule ((= x y)))", 1, "this is no rule"),
    ],
)
def test_a_fault_of_syntax_is_told_with_its_line(text: str, line: int, words: str) -> None:
    error = refused(text)
    assert words in error.message
    assert error.span
    assert error.span.line == line


@pytest.mark.slow
def test_a_fault_of_type_is_shown_where_it_stands() -> None:
    error = refused('\n(rewrite (Bin "add" x (Fill f r c d))\n   (BinS "add" x "a") :ruleset algebra :name "q" :law equal)')
    assert error.span
    assert (error.span.line, error.span.column) == (3, 18)
    assert "type f64, but get type String" in str(error)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("was", "instead", "words"),
    [
        (':name "swap"', "", "no :name"),
        (":law equal", "", "no :law"),
        (":ruleset algebra", "", "no :ruleset"),
        ("equal", "eqal", "`eqal` is not a law"),
        ("algebra", "algebr", "did you mean `algebra`?"),
        ('"swap"', '"neg"', "a rule called 'neg' already"),
        ("(Bin", "(Bon", "unbound function Bon"),
    ],
)
def test_a_rule_that_lacks_something_is_refused(was: str, instead: str, words: str) -> None:
    assert words in str(refused(SWAP.replace(was, instead, 1)))


ROUNDS = '(rewrite (Un "sigmoid" x) (Un "tanh" x) :ruleset algebra :name "lie" :law rounding :within (8 1))'


@pytest.mark.slow
def test_a_rule_that_rounds_says_how_far() -> None:
    bounds = [checked("my.egg", ROUNDS.replace("(8 1)", b)).rules[0].within for b in ("(8 1)", '(of "tanh")')]
    assert [b.half_steps() for b in bounds if b] == [(8, 1), (8, 4)]


@pytest.mark.parametrize(
    ("was", "instead", "words", "at"),
    [
        (" :within (8 1)", "", "has no :within", "(rewrite"),
        (" (8 1)", " 8", "behind `:within` stands no bound", ":within"),
        (" (8 1)", " (8)", "behind `:within` stands no bound", ":within"),
        (" (8 1)", " (8 -1)", "behind `:within` stands no bound", ":within"),
        (" (8 1)", " (0 0)", "has the law equal", ":within"),
        (" (8 1)", ' (of "sigmoidd")', "did you mean `sigmoid`?", ":within"),
        ("rounding", "equal", "of the law equal in the ruleset algebra has no bound", ":within"),
        ("algebra", "vec", "in the ruleset vec has no bound", ":within"),
    ],
)
def test_a_bound_that_is_missing_or_none_is_told(was: str, instead: str, words: str, at: str) -> None:
    error = refused(ROUNDS.replace(was, instead, 1))
    assert words in str(error)
    assert error.span and error.source[error.span.column - 1 :].startswith(at)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "words"),
    [
        ('(Un "epx" x)', 'there is no operation of one tile "epx"'),
        ('(Bin "plus" x x)', 'there is no operation of two tiles "plus"'),
        ('(Bcast 1 (Red 1 "avg" x) 16)', 'there is no reduction "avg"'),
        ('(Cho "<" x x x x)', 'there is no comparison "<"'),
        ('(Cast "half" x)', 'there is no element type "half"'),
    ],
)
def test_a_word_that_names_nothing_is_shown_where_it_stands(side: str, words: str) -> None:
    error = refused(f'(rule ((= v (Un "exp" x))) ((union v {side})) :ruleset algebra :name "q" :law equal)')
    assert words in error.message
    assert error.span and error.source[error.span.column - 1] == '"'


def test_two_rules_of_one_name_are_refused() -> None:
    assert "a rule called 'swap' already" in str(refused(f"{SWAP}\n{SWAP}"))


def test_a_new_instruction_is_refused_as_nothing_could_write_it() -> None:
    assert "an instruction needs a price" in str(refused("(constructor VFoo (P) P)"))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "sides",
    [
        '(Un "exp" x) (Red 1 "sum" x)',
        "(Bcast 1 v n) (Bcast 0 v n)",
        '(Un "exp" x) (Cast "f16" (Un "exp" x))',
        "(MatMul a b 0 0) (MatMul b a 0 0)",
    ],
)
def test_sides_of_different_shape_or_type_are_refused_with_the_rules_name(sides: str) -> None:
    error = refused(f'(rewrite {sides} :ruleset algebra :name "wrong" :law equal)')
    assert "the two sides of rule 'wrong' differ" in str(error)


@pytest.mark.slow
def test_a_condition_can_make_sides_agree() -> None:
    text = (
        '(rule ((= v (Un "exp" x)) (= (dt v) "f16")) ((union v (Cast "f16" (Un "exp" x)))) :ruleset algebra :name "n" :law equal)'
    )
    assert checked("my.egg", text).rules


@pytest.mark.slow
@pytest.mark.parametrize("theory", ["10_nest", "20_algebra"])
def test_our_own_rules_pass_the_same_check(theory: str) -> None:
    forms = parse((files("tile_eg.rules") / f"{theory}.egg").read_text())
    assert [d for d in (difference(f) for f in forms if f[0] in ("rewrite", "rule")) if d] == []


@pytest.mark.slow
def test_an_added_theory_can_be_taken_back() -> None:
    theory = add(SWAP)
    assert added() == (theory,)
    remove(theory)
    assert added() == ()


@pytest.mark.slow
def test_a_theory_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.egg").write_text(SWAP)
    assert read_theory_of(tmp_path / "mine.egg").name == "mine"


def test_a_rule_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="no rule file"):
        read_theory_of(tmp_path / "mine.egg")


def test_every_rule_of_ours_has_a_law_that_a_user_may_write() -> None:
    assert {r.law for r in registry().values()} <= set(LAWS)


def test_places_of_forms_are_offsets_into_the_text() -> None:
    text = '; (x)\n(a "(") (b)'
    assert [text[p.start : p.end] for p in parse_placed(text)] == ['(a "(")', "(b)"]


def test_a_parenthesis_in_a_string_closes_nothing() -> None:
    with pytest.raises(SyntaxFault, match="never closed"):
        list(parse_placed('(a ")"'))
