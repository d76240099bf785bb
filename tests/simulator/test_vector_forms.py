"""Every form of the elementwise vector instructions against NumPy: counts, masks, the mask register, strides, special numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.forms import BINARY_PARAMS, ELEMENTS, FORMS, TYPES, UNARY_PARAMS, Family, Form

pytestmark = pytest.mark.slow(but=3)

many = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -6e-8, 6e-5, 65504.0, -3e38)


def numbers(dtype: str, seed: int) -> np.ndarray:
    """ELEMENTS numbers over the whole range of a type, specials sprinkled over them."""
    rng, kind = np.random.default_rng(seed), np.dtype(TYPES[dtype])
    if kind.kind == "i":
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, ELEMENTS, kind, endpoint=True)
    with np.errstate(over="ignore"):
        values = (rng.standard_normal(ELEMENTS) * 2.0 ** rng.integers(-12, 12, ELEMENTS)).astype(kind)
        values[rng.integers(0, ELEMENTS, 600)] = np.array(rng.choice(SPECIAL, 600), kind)
    return values


@st.composite
def forms(draw: st.DrawFn, size: int) -> Form:
    kind, per_round = draw(st.sampled_from(FORMS)), 256 // size
    block = draw(st.tuples(*[st.integers(1, 2)] * 3))
    rounds = tuple(8 * b + draw(st.integers(0, 3)) for b in block[:1]) + draw(st.tuples(*[st.integers(0, 9)] * 2))
    if kind == "count":
        return Form(kind, draw(st.integers(1, ELEMENTS)))
    if kind.startswith("counter"):
        return Form(kind, draw(st.integers(1, per_round * 10)), 0, 1, block, rounds)
    bits = draw(st.integers(1, 2**per_round - 1)) if kind != "lanes" else 0
    return Form(kind, draw(st.integers(1, per_round)), bits, draw(st.integers(0, 10)), block, rounds)


def check(family: Family, name: str, form: Form, seed: int, wanted: Callable[..., np.ndarray], scalar: float = 0.0) -> None:
    """`wanted(destination, a, b)` on the elements that take part; all others stay."""
    dtype = TYPES[family.dtype]
    a, b, before = (numbers(family.dtype, 3 * seed + i) for i in range(3))
    expected = before.copy()
    to, left, right = form.elements(np.dtype(dtype).itemsize)
    with np.errstate(all="ignore"):
        expected[to] = wanted(before[to], a[left], b[right]).astype(dtype)
    np.testing.assert_array_equal(family.run(name, form, a, b, before, scalar), expected, err_msg=f"{name} {form}")


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c, rounded once: half numbers are exact in double, and floats in long double."""
    wide = np.float64 if a.dtype == np.float16 else np.longdouble
    return a.astype(wide) * b.astype(wide) + c.astype(wide)


def exact(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """`function` in double for floats, in the type itself for whole numbers (they wrap)."""
    return lambda *xs: function(*(x.astype(np.float64) if x.dtype.kind == "f" else x for x in xs))


BINARY = {
    "Add": exact(np.add), "Sub": exact(np.subtract), "Mul": exact(np.multiply),
    "Max": np.maximum, "Min": np.minimum,
}  # fmt: skip
FLOATS = {
    "Div": exact(np.divide),
    "AddRelu": exact(lambda a, b: np.where(a + b < 0, 0, a + b)),
    "SubRelu": exact(lambda a, b: np.where(a - b < 0, 0, a - b)),
}
ACCUMULATING = {
    "FusedMulAdd": lambda d, a, b: fused(a, d, b),
    "FusedMulAddRelu": lambda d, a, b: np.where(fused(a, d, b) < 0, 0, fused(a, d, b)),
}


def binary(dtype: str) -> Family:
    names = (*BINARY, *(FLOATS if TYPES[dtype] in (np.float16, np.float32) else ()))
    names += tuple(ACCUMULATING) if TYPES[dtype] in (np.float16, np.float32) else ("And", "Or") if dtype == "int16_t" else ()
    return Family(names, "dst, a, b", dtype, BINARY_PARAMS, f"{dtype}, SET")


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", TYPES)
@many
@given(data=st.data(), seed=st.integers(0, 99))
def test_binary_instructions_in_all_forms(dtype: str, data: st.DataObject, seed: int) -> None:
    family = binary(dtype)
    name = data.draw(st.sampled_from(family.calls))
    form = data.draw(forms(np.dtype(TYPES[dtype]).itemsize))
    function = {**BINARY, **FLOATS, "And": np.bitwise_and, "Or": np.bitwise_or}.get(name)
    check(family, name, form, seed, ACCUMULATING[name] if function is None else lambda _, a, b: function(a, b))


SCALARS = {"Adds": exact(np.add), "Muls": exact(np.multiply), "Maxs": np.maximum, "Mins": np.minimum}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES)
@many
@given(data=st.data(), seed=st.integers(0, 99))
def test_instructions_with_a_scalar_in_all_forms(dtype: str, data: st.DataObject, seed: int) -> None:
    kind = TYPES[dtype]
    family = Family(tuple(SCALARS), f"dst, a, ({dtype})scalar", dtype, UNARY_PARAMS, f"{dtype}, SET")
    name, scalar = data.draw(st.sampled_from(family.calls)), data.draw(st.integers(-300, 300))
    form = data.draw(forms(np.dtype(kind).itemsize))
    check(family, name, form, seed, lambda _, a, __: SCALARS[name](a, np.array(scalar, kind)), scalar)


@pytest.mark.parametrize("dtype", ["half", "float"])
@many
@given(data=st.data(), seed=st.integers(0, 99))
def test_unary_instructions_in_all_forms(dtype: str, data: st.DataObject, seed: int) -> None:
    unary = {
        "Abs": np.abs, "Sqrt": exact(np.sqrt), "Exp": exact(np.exp), "Ln": exact(np.log),
        "Relu": lambda x: np.where(x < 0, np.zeros_like(x), x),
    }  # fmt: skip
    family = Family(tuple(unary), "dst, a", dtype, UNARY_PARAMS, f"{dtype}, SET")
    name, form = data.draw(st.sampled_from(family.calls)), data.draw(forms(np.dtype(TYPES[dtype]).itemsize))
    check(family, name, form, seed, lambda _, a, __: unary[name](a))


def shift_left(x: np.ndarray, by: int) -> np.ndarray:
    """The sign bit stays, as the vendor's page on ShiftLeft says."""
    low = np.array(np.iinfo(x.dtype).max, x.dtype)
    return ((x.astype(np.int64) << by) & low).astype(x.dtype) | (x & ~low)


@pytest.mark.parametrize("dtype", ["int16_t", "int32_t"])
@many
@given(data=st.data(), by=st.integers(0, 15), seed=st.integers(0, 99))
def test_shifts_keep_the_sign(dtype: str, data: st.DataObject, by: int, seed: int) -> None:
    family = Family(("ShiftLeft", "ShiftRight"), f"dst, a, ({dtype})scalar", dtype, UNARY_PARAMS, f"{dtype}, SET")
    name, form = data.draw(st.sampled_from(family.calls)), data.draw(forms(np.dtype(TYPES[dtype]).itemsize))
    function = shift_left if name == "ShiftLeft" else np.right_shift
    check(family, name, form, seed, lambda _, a, __: function(a, by), by)
