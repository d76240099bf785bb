"""What is certain about an index expression is so at every point."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_eg.frontend.ranges import at_most, decided, extremes, surely_equal
from tile_eg.frontend.ssa.extents import inside, known_as, smaller
from tile_eg.frontend.ssa.rounding import rounded
from tile_eg.ir import index as ix
from tile_eg.ops.types import BF16, F16

RANGES = {"i": (0, 3), "j": (0, 4)}
VARIABLES = ix.var("i"), ix.var("j")
indices = st.recursive(
    st.one_of(st.integers(-9, 9).map(ix.const), st.sampled_from(VARIABLES)),
    lambda e: st.one_of(
        st.tuples(e, e).map(lambda p: p[0] + p[1]),
        st.tuples(e, st.integers(-4, 4)).map(lambda p: p[0] * p[1]),
        st.tuples(e, st.integers(1, 5)).map(lambda p: p[0] // p[1]),
        st.tuples(e, st.integers(1, 5)).map(lambda p: p[0] % p[1]),
        st.tuples(e, e).map(lambda p: ix.minimum(*p)),
        st.tuples(e, e).map(lambda p: ix.less(*p)),
    ),
    max_leaves=6,
)


def all_values(e: ix.Expr) -> list[int]:
    return [ix.evaluate(e, {"i": i, "j": j}) for i, j in product(range(4), range(5))]


@pytest.mark.slow
@given(indices)
def test_extremes_are_the_least_and_the_greatest_value(e):
    assert extremes(e, RANGES) == (min(all_values(e)), max(all_values(e)))


@pytest.mark.slow
@given(indices, indices)
def test_extremes_keep_to_a_condition(e, where):
    values = [v for v, holds in zip(all_values(e), all_values(where), strict=True) if holds]
    expected = (min(values), max(values)) if values else (0, -1)
    assert extremes(e, RANGES, where) == expected


@pytest.mark.slow
@given(indices, st.integers(-20, 20))
def test_at_most_is_exact_on_small_ranges(e, limit):
    assert at_most(e, limit, RANGES) == (max(all_values(e)) <= limit)


@pytest.mark.slow
@given(indices, indices)
def test_equality_is_decided(a, b):
    assert surely_equal(a, b, RANGES) == (all_values(a) == all_values(b))


@pytest.mark.slow
@given(indices)
def test_a_condition_is_decided_where_it_does_not_vary(e):
    truths = set(map(bool, all_values(ix.less(e, 3))))
    assert decided(ix.less(e, 3), RANGES) == (truths.pop() if len(truths) == 1 else None)


@pytest.mark.slow
@given(indices, st.lists(indices, max_size=3))
def test_an_extent_is_known_as_the_first_that_equals_it(e, known):
    values = [all_values(k) for k in known]
    expected = known[values.index(all_values(e))] if all_values(e) in values else e
    assert known_as(e, known, RANGES) == (expected if len(set(all_values(e))) > 1 else ix.const(all_values(e)[0]))


@pytest.mark.slow
@given(indices, st.integers(1, 9), st.integers(1, 30))
def test_a_valid_extent_is_what_lies_inside(start, extent, size):
    found = all_values(inside(start, extent, size, RANGES))
    assert found == [max(0, min(extent, size - s)) for s in all_values(start)]


@pytest.mark.slow
@given(indices, indices)
def test_the_smaller_of_two_extents_is_smaller_everywhere(a, b):
    assert all_values(smaller(a, b, RANGES)) == [min(p) for p in zip(all_values(a), all_values(b), strict=True)]


def test_a_range_too_large_to_enumerate_gives_an_interval():
    big = {"i": (0, 1 << 30)}
    assert extremes(VARIABLES[0] // 2, big) == (0, 1 << 29)


@pytest.mark.slow
@given(st.floats(width=32, allow_nan=False))
def test_a_constant_is_rounded_as_numpy_rounds_it(x):
    import numpy as np
    from ml_dtypes import bfloat16

    with np.errstate(over="ignore"):
        assert rounded(x, F16) == float(np.float32(x).astype(np.float16))
        assert rounded(x, BF16) == float(np.float32(x).astype(bfloat16))


@pytest.mark.parametrize(("value", "dtype"), [(1e39, BF16), (1e39, F16), (70000.0, F16)])
def test_a_constant_beyond_the_largest_is_infinite(value, dtype):
    assert rounded(value, dtype) == float("inf")
