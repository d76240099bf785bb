"""Every equality of values holds by its law, within the bound that stands beside it.

Both sides are computed in numbers, with drawn shapes, element types and values.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.rules.instances import DIGITS, EXPONENT, Instance, laws, laws_of_values
from tile_eg.ir.accuracy import HALF_STEPS, HALF_STEPS_OF_ONE
from tile_eg.rules import INEXACT, LAWS, registry, theories
from tile_eg.rules.bound import Bound
from tile_eg.rules.user import checked

EXAMPLES = settings(
    max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink)
)
SEARCH = settings(EXAMPLES, max_examples=400, phases=(Phase.generate,))
EQUALITIES = laws_of_values()
EXACT = [n for n in EQUALITIES if registry()[n].law == "equal"]
ROUNDED = [n for n in EQUALITIES if registry()[n].law in INEXACT]
NUMBERS = ("added-mask", "scale-before-loop")
"""Rules that may make a number of what is none: the sum of two infinities, a product that became one before it was scaled."""
NORMAL = {"scale-before-loop": ("a", "f")}
"""Rules that scale an operand by a constant: it is a normal number then, too."""
FACTORS = {"row-factors": ("xa", "ab"), "number-and-row-factor": ("xs", "sb"), "column-factors": ("xw", "wy")}
"""Rules that make one factor of two: the products of elements of these operands are normal numbers, too."""


def disagree(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where numbers differ in a bit. Any NaN is like any other, and so is a zero of either sign."""
    with np.errstate(invalid="ignore"):  # the NaN of bf16
        a, b = one.astype(np.float64), other.astype(np.float64)
    return (a != b) & ~(np.isnan(a) & np.isnan(b))


def too_far(one: np.ndarray, other: np.ndarray, dtype: str, relative: float, absolute: float) -> np.ndarray:
    """Where numbers differ by more than half steps of their type; the largest numbers may have become infinite."""
    half, (low, high) = 2.0 ** -DIGITS[dtype], EXPONENT[dtype]
    a, b = (np.clip(x.astype(np.float64), -(2.0**high), 2.0**high) for x in (one, other))
    return disagree(a, b) & ~(np.abs(a - b) <= half * (relative * np.maximum(np.abs(b), 2.0**low) + absolute))


def bound_of_rule(name: str) -> Bound:
    bound = registry()[name].within
    assert bound
    return bound


def stays_normal(instance: Instance, operand: str, factor: str) -> bool:
    """Whether an operand has no element that becomes subnormal when it is scaled."""
    x, dtype = instance.array(operand)
    x = np.abs(x[np.isfinite(x) & (x != 0)].astype(np.float64))
    return bool((x * abs(instance.env[factor]) >= 2.0 ** EXPONENT[dtype][0]).all())


def stay_normal(instance: Instance, one: str, other: str) -> bool:
    """Whether no product of elements of two operands is subnormal, or beyond the largest number."""
    (x, dtype), (y, _) = (instance.array(name) for name in (one, other))
    with np.errstate(all="ignore"):
        products = np.abs(np.outer(x.astype(np.float64), y.astype(np.float64)))
    products = products[np.isfinite(products) & (products != 0)]
    low, high = EXPONENT[dtype]
    return bool(((products >= 2.0**low) & (products <= 2.0**high)).all())


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("name", EXACT)
def test_both_sides_are_equal_bit_for_bit(name: str) -> None:
    @EXAMPLES
    @given(st.data())
    def check(data: st.DataObject) -> None:
        one, other = Instance(data, EQUALITIES[name]).sides()
        assert not disagree(one, other).any(), (one, other)

    check()


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDED)
def test_both_sides_are_within_a_few_roundings(name: str) -> None:
    @EXAMPLES
    @given(st.data())
    def check(data: st.DataObject) -> None:
        instance = Instance(data, EQUALITIES[name], tame=True)
        assume(name not in NORMAL or stays_normal(instance, *NORMAL[name]))
        assume(all(stay_normal(instance, *pair) for pair in FACTORS.get(name, ())))
        one, other = instance.sides()
        far = too_far(other, one, instance.dtype, *bound_of_rule(name).half_steps())
        assert not (far & (np.isfinite(one) | (name not in NUMBERS))).any(), (one, other)

    check()


@pytest.mark.slow
def test_the_users_rule_that_the_page_shows_holds_within_its_bound() -> None:
    page = (Path(__file__).parents[2] / "docs" / "search.md").read_text(encoding="utf-8")
    text = page.split("## Rules of your own\n\n```lisp\n")[1].split("```")[0]
    (rule,), (law,) = checked("page.egg", text).rules, laws(text).values()
    assert rule.within

    @EXAMPLES
    @given(st.data())
    def check(data: st.DataObject) -> None:
        instance = Instance(data, law, tame=True)
        one, other = instance.sides()
        assert rule.within and not too_far(other, one, instance.dtype, *rule.within.half_steps()).any()

    check()


def test_rules_of_values_that_round_have_a_bound_and_no_others() -> None:
    assert {n for n, r in registry().items() if r.within} == {n for n, r in registry().items() if r.needs_bound}


def test_a_bound_of_an_operation_is_what_its_results_are_compared_by() -> None:
    assert bound_of_rule("tanh").half_steps() == (HALF_STEPS["tanh"], HALF_STEPS_OF_ONE["tanh"])


def test_a_bound_that_is_too_narrow_is_seen() -> None:
    narrow = Bound(1, 0)

    @SEARCH
    @given(st.data())
    def check(data: st.DataObject) -> None:
        instance = Instance(data, EQUALITIES["sigmoid"], tame=True)
        one, other = instance.sides()
        assert not (too_far(other, one, instance.dtype, *narrow.half_steps()) & np.isfinite(one)).any()

    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize(
    "wrong",
    [
        '(rewrite (Bin "sub" x (Fill f r c d)) (BinS "add" x f) :ruleset algebra :name "wrong" :law equal)',
        '(rewrite (BinR op 0 x v) (BinR op 1 x v) :ruleset algebra :name "wrong" :law equal)',
        '(rewrite (Bin "mul" x (Bin "add" y z)) (Bin "add" (Bin "mul" x y) (Bin "mul" x z)) :name "wrong" :law equal)',
        '(rewrite (Bin "max" x x) (Un "relu" x) :name "wrong" :law equal)',
        '(rewrite (Cast d (Piece o h w i j x)) (Piece (IC 0) h w i j (Cast d x)) :name "wrong" :law equal)',
    ],
)
def test_a_wrong_rule_is_seen(wrong: str) -> None:
    (law,) = laws(wrong).values()

    @SEARCH
    @given(st.data())
    def check(data: st.DataObject) -> None:
        one, other = Instance(data, law).sides()
        assert not disagree(one, other).any()

    with pytest.raises(AssertionError):
        check()


def test_a_rule_that_rounds_is_not_equal_bit_for_bit() -> None:
    law = EQUALITIES["div-rows"]

    @SEARCH
    @given(st.data())
    def check(data: st.DataObject) -> None:
        one, other = Instance(data, law).sides()
        assert not disagree(one, other).any()

    with pytest.raises(AssertionError):
        check()


def test_rules_have_names_of_their_own() -> None:
    names = [r.name for t in theories() for r in t.rules]
    assert len(names) == len(set(names))


def test_every_rule_has_a_known_law() -> None:
    assert {r.law for r in registry().values()} <= set(LAWS)


def test_rules_that_build_instructions_state_their_law() -> None:
    assert not [
        r.name for r in registry().values() if r.ruleset not in ("facts", "loops") and r.law == "fact" and "union" in r.maths
    ]


def test_a_line_of_maths_is_made_from_the_rule() -> None:
    assert registry()["div-rows"].maths.startswith("BinR(div, 0, x, l) = BinR(mul, 0, x, ")
