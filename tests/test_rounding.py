"""What roundings may do to a result: no exact result of operands that are a little off is farther away than it says."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_eg.ir import arithmetic as ar
from tile_eg.ir import rounding as rd
from tile_eg.ir.accuracy import HALF_STEP
from tile_eg.ops.elementwise import BINARY, REDUCE, UNARY
from tile_eg.ops.types import F32

DTYPES = [np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16)]
FEW = settings(max_examples=60, deadline=None)
Array = np.ndarray


class Operand:
    """Numbers of a type, their spread, and other numbers within it, in f64."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, exact: bool) -> None:
        size = rng.choice([1.0, 1e-3, 30.0])
        self.data = (rng.uniform(-size, size, shape) * (rng.random(shape) < 0.9)).astype(dtype)
        scale = 0.0 if exact else 10.0 ** rng.uniform(-8, 0)
        self.spread = scale * rng.uniform(0, 1, (2, *shape)) * np.abs(self.data.astype(np.float64))
        shared, own = rng.uniform(-1, 1), rng.choice([-1, 1], shape) * rng.uniform(0, 1, shape)
        self.other = self.data.astype(np.float64) + shared * self.spread[0] + own * self.spread[1]


def holds(other: Array, result: Array, spread: Array) -> bool:
    """Whether another result lies where the spread says that any may lie."""
    there, bound = result.astype(np.float64), rd.total(spread)
    overflows = np.isinf(other.astype(result.dtype)) if result.dtype.kind != "i" else np.zeros(other.shape, bool)
    far = np.where(overflows, other.astype(result.dtype) != result, np.abs(other - there) > bound * (1 + 1e-9))
    return not (far & np.isfinite(bound) & ~np.isnan(other)).any()


def drawn(check: Callable[[np.random.Generator, np.dtype, bool], None]) -> None:
    @FEW
    @given(st.integers(0, 2**32 - 1), st.sampled_from(DTYPES), st.booleans())
    def each(seed: int, dtype: np.dtype, exact: bool) -> None:
        with np.errstate(all="ignore"):
            check(np.random.default_rng(seed), dtype, exact)

    each()


@pytest.mark.slow(but=7)
@pytest.mark.parametrize("op", [u for u, op in UNARY.items() if F32 in op.takes])
def test_a_function_of_each_element_stays_within_its_spread(op: str) -> None:
    def check(rng: np.random.Generator, dtype: np.dtype, exact: bool) -> None:
        x = Operand(rng, (40,), dtype, exact)
        result = ar.unary(op, x.data)
        assert holds(UNARY[op].meaning(np, x.other), result, rd.unary(op, x.data, x.spread, result))

    drawn(check)


@pytest.mark.slow
@pytest.mark.parametrize("op", [b for b, op in BINARY.items() if F32 in op.takes])
def test_arithmetic_of_two_stays_within_its_spread(op: str) -> None:
    def check(rng: np.random.Generator, dtype: np.dtype, exact: bool) -> None:
        x, y = (Operand(rng, (40,), dtype, exact) for _ in range(2))
        result = ar.binary(op, x.data, y.data)
        assert holds(BINARY[op].meaning(np, x.other, y.other), result, rd.binary(op, x.data, y.data, x.spread, y.spread, result))

    drawn(check)


@pytest.mark.slow
@pytest.mark.parametrize("op", REDUCE)
def test_a_reduction_stays_within_its_spread(op: str) -> None:
    def check(rng: np.random.Generator, dtype: np.dtype, exact: bool) -> None:
        x = Operand(rng, (3, 200), dtype, exact)
        result = ar.reduce(op, x.data, 1)
        assert holds(REDUCE[op].meaning(np, x.other, 1), result, rd.reduce(op, x.data, x.spread, 1, result))

    drawn(check)


def test_a_product_stays_within_its_spread() -> None:
    def check(rng: np.random.Generator, dtype: np.dtype, exact: bool) -> None:
        a, b = Operand(rng, (5, 150), dtype, exact), Operand(rng, (150, 4), dtype, exact)
        result = ar.matmul(a.data, b.data)
        assert holds(a.other @ b.other, result, rd.matmul(a.data, b.data, a.spread, b.spread, result))

    drawn(check)


@pytest.mark.parametrize("to", [np.dtype(np.float16), np.dtype(np.int8)])
def test_a_cast_stays_within_its_spread(to: np.dtype) -> None:
    def check(rng: np.random.Generator, dtype: np.dtype, exact: bool) -> None:
        x = Operand(rng, (40,), np.dtype(np.float32), exact)
        result = ar.cast(x.data, to)
        other = x.other if to.kind == "f" else ar.cast(x.other, to).astype(np.float64)
        assert holds(other, result, rd.cast(x.data, x.spread, result))

    drawn(check)


def test_a_choice_may_go_either_way_only_where_roundings_decide_it() -> None:
    a, b = np.array([1.0, 1.0, 1.0]), np.array([1.0 + 1e-8, 2.0, 1.0])
    spread = np.array([[1e-7, 1e-7, 0.0], [0.0, 0.0, 0.0]])
    near = rd.close(a, b, spread, rd.exact((3,)))
    assert near.tolist() == [True, False, False]
    x, y = np.full(3, 5.0), np.full(3, 7.0)
    assert rd.total(rd.either(near, x, y, rd.exact((3,)), rd.exact((3,)), rd.exact((3,)))).tolist() == [2.0, 0.0, 0.0]


def test_own_errors_of_many_elements_partly_cancel_and_common_ones_do_not() -> None:
    x, zero = np.ones((1, 10_000), np.float32), np.zeros((1, 10_000))
    result = ar.reduce("sum", x, 1)
    own, common = (rd.total(rd.reduce("sum", x, np.stack(s), 1, result))[0] for s in ([zero, zero + 0.1], [zero + 0.1, zero]))
    assert own < 50 < 1000 <= common


def test_what_is_repeated_is_in_common() -> None:
    spread = np.stack([np.zeros((4, 1)), np.full((4, 1), 0.25)])
    assert rd.repeated(spread, (4, 8))[0].tolist() == [[0.25] * 8] * 4


def test_what_is_exact_in_any_order_has_no_spread() -> None:
    x = np.array([1.0, 2.0], np.float32)
    assert not rd.binary("add", x, x, rd.exact((2,)), rd.exact((2,)), x + x).any()


@pytest.mark.parametrize(("value", "spread", "known"), [(65504.0, 0.0, True), (65510.0, 100.0, False), (9e4, 100.0, True)])
def test_nothing_is_known_of_a_number_that_is_infinite_or_not_by_a_rounding(value: float, spread: float, known: bool) -> None:
    x = np.array([value], np.float32)
    with np.errstate(over="ignore"):
        found = rd.cast(x, np.array([[spread], [0.0]]), x.astype(np.float16))
    assert np.isfinite(rd.total(found)[0]) == known


@pytest.mark.parametrize("op", ["add", "mul", "div", "max"])
def test_nan_in_an_operand_is_certain(op: str) -> None:
    x, y = np.array([np.nan], np.float32), np.array([2.0], np.float32)
    spread = np.array([[0.0], [1e-7]])
    assert rd.total(rd.binary(op, x, y, spread, spread, ar.binary(op, x, y)))[0] < 1e-6


def test_a_bound_is_a_rounding_of_16_bits_where_there_is_one() -> None:
    x = np.array([1.0], np.float32) / 3
    assert rd.total(rd.cast(x, rd.exact((1,)), x.astype(np.float16)))[0] == pytest.approx(HALF_STEP["float16"] / 3, rel=1e-3)
