"""Index expressions have a normal form, and evaluate like the arithmetic they stand for."""

import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_eg.ir import index as ix

A, B = ix.var("i"), ix.var("j")
leaves = st.one_of(st.integers(-8, 8).map(ix.const), st.sampled_from("ijk").map(ix.var))
exprs = st.recursive(
    leaves,
    lambda e: st.one_of(
        st.tuples(e, e).map(lambda p: p[0] + p[1]),
        st.tuples(e, st.integers(-4, 4)).map(lambda p: p[0] * p[1]),
        st.tuples(e, st.integers(1, 5)).map(lambda p: p[0] // p[1]),
        st.tuples(e, st.integers(1, 5)).map(lambda p: p[0] % p[1]),
        st.tuples(e, e).map(lambda p: ix.minimum(*p)),
    ),
    max_leaves=8,
)
envs = st.fixed_dictionaries({n: st.integers(0, 9) for n in "ijk"})


@pytest.mark.slow
@given(exprs, exprs, envs)
def test_a_sum_evaluates_to_the_sum(a, b, env):
    assert ix.evaluate(a + b, env) == ix.evaluate(a, env) + ix.evaluate(b, env)


@pytest.mark.slow
@given(exprs, envs)
def test_bounds_hold_every_value(e, env):
    low, high = ix.bounds(e, dict.fromkeys("ijk", (0, 9)))
    assert low <= ix.evaluate(e, env) <= high


@pytest.mark.slow
@given(exprs, exprs)
def test_addition_commutes_in_the_normal_form(a, b):
    assert a + b == b + a


@pytest.mark.slow
@given(exprs, envs)
def test_substitution_agrees_with_evaluation(e, env):
    assert ix.substitute(e, {n: ix.const(v) for n, v in env.items()}) == ix.const(ix.evaluate(e, env))


def test_a_multiple_divides_without_a_trace():
    assert (ix.var("i") * 64) // 32 == ix.var("i") * 2


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ((A * 2 + 1) // 2, A),
        ((A * 4 + B) // 4, A + B // 4),
        ((A * 4 + B) % 4, B % 4),
        ((A * 4 + B * 2 + 1) % 4, B % 2 * 2 + 1),
        (A * 128 // 256, A // 2),
        (A // 2 // 3, A // 6),
        (A % 12 % 4, A % 4),
        (A // 3 * 384 + A % 3 * 128, A * 128),
    ],
)
def test_equal_quotients_and_remainders_are_one_expression(written: ix.Expr, plain: ix.Expr) -> None:
    assert written == plain


def test_what_is_divided_is_not_made_negative() -> None:
    assert ix.text((A * 4 - B) // 4) == "(((i * 4) + (j * -1)) / 4)"


@pytest.mark.slow
@given(exprs, envs)
def test_what_cannot_happen_is_left_out(e, env):
    assert ix.evaluate(ix.simplified(e, dict.fromkeys("ijk", (0, 9))), env) == ix.evaluate(e, env)


@pytest.mark.parametrize(
    ("written", "plain"), [(A % 10, A), (A // 10, ix.ZERO), ((A + 20) % 10, A), (ix.minimum(A, 9), A), (ix.maximum(A, B - 9), A)]
)
def test_an_interval_decides_remainders_and_extremes(written: ix.Expr, plain: ix.Expr) -> None:
    assert ix.simplified(written, dict.fromkeys("ijk", (0, 9))) == plain


def test_an_expression_can_be_looked_up_in_another_process() -> None:
    e = A * 2 + B
    code = f"import pickle; from tile_eg.ir.index import var; e = pickle.loads({pickle.dumps((e, hash(e)))!r})[0]"
    found = f"{code}; print(e in {{var('i') * 2 + var('j')}})"
    run = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    assert run.stdout == "True\n"
