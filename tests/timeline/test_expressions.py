"""Index expressions as functions, as constants and over arrays mean what `evaluate` means."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_eg.ir.index import ONE, ZERO, Expr, both, const, div, evaluate, less, maximum, minimum, mod, var
from tile_eg.ir.program import Loop
from tile_eg.timeline.arrays import values
from tile_eg.timeline.expressions import Settler, compiled

TRIPS = {"i": 5, "j": 7, "k": 3}
LEAVES = st.one_of(st.sampled_from([var(name) for name in TRIPS]), st.integers(0, 40).map(const))


def joined(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    two: list[Callable[[Expr, Expr], Expr]] = [
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, minimum, maximum, less, both,
    ]  # fmt: skip
    by: list[Callable[[Expr, int], Expr]] = [lambda a, n: div(a, const(n)), lambda a, n: mod(a, const(n)), lambda a, n: a * n]
    return st.one_of(
        st.builds(lambda f, a, b: f(a, b), st.sampled_from(two), parts, parts),
        st.builds(lambda f, a, n: f(a, n), st.sampled_from(by), parts, st.integers(1, 9)),
    )


EXPRS = st.recursive(LEAVES, joined, max_leaves=8)
POINTS = [{"i": i, "j": j, "k": k} for i in range(5) for j in range(7) for k in range(3)]
LOOPS = (Loop("i", 5, (Loop("j", 7, (Loop("k", 3, ()),)),)),)


@pytest.mark.slow
@given(e=EXPRS)
def test_a_compiled_expression_has_its_value_everywhere(e: Expr) -> None:
    assert [compiled(e)(p) for p in POINTS] == [evaluate(e, p) for p in POINTS]


@pytest.mark.slow
@given(e=EXPRS)
def test_a_settled_expression_has_its_value_in_every_trip(e: Expr) -> None:
    settled = Settler(LOOPS, {})(e)
    assert [evaluate(settled, p) for p in POINTS] == [evaluate(e, p) for p in POINTS]


@pytest.mark.slow
@given(e=EXPRS)
def test_an_expression_over_arrays_has_its_value_everywhere(e: Expr) -> None:
    found = values(e, {name: np.array([p[name] for p in POINTS]) for name in TRIPS})
    assert np.broadcast_to(found, len(POINTS)).tolist() == [evaluate(e, p) for p in POINTS]


def test_a_tail_that_never_comes_is_settled() -> None:
    assert Settler(LOOPS, {})(minimum(64, 64 * 5 - var("i") * 64)) == const(64)
    assert Settler((Loop("i", 6, ()),), {})(minimum(64, 64 * 5 - var("i") * 64)) != const(64)


def test_a_guard_of_the_block_is_settled() -> None:
    assert Settler(LOOPS, {"block": 3})(less(var("block"), 4)) == const(1)


def test_expressions_that_come_and_go_are_not_taken_for_one_another() -> None:
    settle = Settler((), {"i": 3})
    assert [settle(less(var("i"), n)) for n in range(200)] == [ONE if n > 3 else ZERO for n in range(200)]


@pytest.mark.filterwarnings("error")
def test_a_block_that_is_not_there_may_divide_by_zero() -> None:
    left = var("n") - var("block")
    env = {"n": 2, "block": np.arange(4)}
    assert values(div(const(6), left), env).tolist() == [3, 6, 0, -6]
    assert values(mod(const(5), left), env).tolist() == [1, 0, 0, 0]
