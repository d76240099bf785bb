"""Cast between all element types that it takes, in all rounding modes and forms, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.forms import FORMS, READ, SET_REGISTER, Form
from tests.simulator.kernels import gm, kernel, run_vector

TYPES = {
    "half": np.float16, "float": np.float32, "bfloat16_t": ml_dtypes.bfloat16, "int8_t": np.int8, "uint8_t": np.uint8,
    "int16_t": np.int16, "int32_t": np.int32, "int64_t": np.int64,
}  # fmt: skip
FORMATS = {np.float16: (11, -14), np.float32: (24, -126), ml_dtypes.bfloat16: (8, -126)}  # digits, least exponent
NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = range(7)
ALL = (RINT, FLOOR, CEIL, ROUND, TRUNC)
# The vendor's table for Atlas A2 and A3: (destination, source), rounding modes.
PAIRS = {
    ("half", "int8_t"): (NONE,), ("half", "uint8_t"): (NONE,), ("half", "int16_t"): (*ALL, NONE), ("float", "int16_t"): (NONE,),
    ("int8_t", "half"): (*ALL, NONE), ("uint8_t", "half"): (*ALL, NONE), ("int16_t", "half"): ALL, ("int32_t", "half"): ALL,
    ("float", "half"): (NONE,), ("int32_t", "bfloat16_t"): ALL, ("float", "bfloat16_t"): (NONE,), ("int16_t", "int32_t"): (NONE,),
    ("float", "int32_t"): (*ALL, NONE), ("int64_t", "int32_t"): (NONE,), ("int16_t", "float"): ALL,
    ("half", "float"): (*ALL, ODD, NONE), ("bfloat16_t", "float"): ALL, ("int32_t", "float"): ALL, ("float", "float"): ALL,
    ("int64_t", "float"): ALL, ("int32_t", "int64_t"): (NONE,), ("float", "int64_t"): ALL,
}  # fmt: skip
BYTES = 65536
CASES = "".join(f"case {i}: each({to}(0), {of}(0)); break;\n" for i, (to, of) in enumerate(PAIRS))
SOURCE = kernel(
    "A P C",
    "AIV_ONLY",
    f"""{gm("A C", "uint8_t", BYTES)} {gm("P", "int32_t", 32)} {READ}
LocalTensor<uint8_t> dst(TPosition::VECCALC, 0, {BYTES}), a(TPosition::VECCALC, {BYTES}, {BYTES});
DataCopy(dst, gmC, {BYTES}); DataCopy(a, gmA, {BYTES}); ORDER(MTE2_V);
{SET_REGISTER.replace("TYPE", "half")}
auto each = [&](auto to, auto of) {{
  using T = decltype(to); using U = decltype(of);
  auto d = dst.ReinterpretCast<T>(); auto s = a.ReinterpretCast<U>();
  const RoundMode mode = RoundMode(p[14]); UnaryRepeatParams params(p[8], p[9], p[11], p[12]);
  if (p[1] == 0) Cast(d, s, mode, p[2]);
  else if (p[1] == 2) Cast(d, s, mode, bits, p[7], params);
  else if (p[1] >= 4) Cast<T, U, false>(d, s, mode, MASK_PLACEHOLDER, p[7], params);
  else Cast(d, s, mode, p[2], p[7], params);
}};
switch (p[0]) {{
{CASES}}}
SetMaskNorm(); ResetMask(); ORDER(V_MTE3); DataCopy(gmC, dst, {BYTES});
""",
)


def whole(x: Fraction, mode: int) -> int:
    if mode in (NONE, RINT):
        return round(x)
    if mode == ROUND:
        return int(math.copysign(1, x)) * math.floor(abs(x) + Fraction(1, 2))
    if mode == ODD:
        return x.numerator if x.denominator == 1 else next(n for n in (math.floor(x), math.ceil(x)) if n % 2)
    return {FLOOR: math.floor, CEIL: math.ceil, TRUNC: math.trunc}[mode](x)


def exponent(x: Fraction) -> int:
    guess = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return guess if abs(x) >= Fraction(2) ** guess else guess - 1


def in_format(x: Fraction, digits: int, least: int, mode: int) -> Fraction:
    if not x:
        return x
    unit = Fraction(2) ** (max(exponent(x), least) - digits + 1)
    return whole(x / unit, mode) * unit


def cast(value: np.generic, to: type, mode: int, *, to_whole: bool) -> float | int:
    if np.dtype(value.dtype).kind != "i" and np.dtype(value.dtype).kind != "u" and not np.isfinite(float(value)):
        return float(value) if to in FORMATS else _limit(float(value), to)
    x = Fraction(int(value) if value.dtype.kind in "iu" else float(value))
    if to not in FORMATS:
        info = np.iinfo(to)
        return min(max(whole(x, mode), info.min), info.max)
    y = Fraction(whole(x, mode)) if to_whole else in_format(x, *FORMATS[to], mode)
    return float(y)


def _limit(x: float, to: type) -> int:
    return 0 if math.isnan(x) else int(np.iinfo(to).max if x > 0 else np.iinfo(to).min)


def numbers(kind: type, count: int, seed: int) -> np.ndarray:
    """Numbers of every size, halves between whole numbers, and specials."""
    rng = np.random.default_rng(seed)
    if np.dtype(kind).kind in "iu":
        shift = rng.integers(0, np.dtype(kind).itemsize * 8, count)
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, count, kind, endpoint=True) >> shift.astype(kind)
    values = rng.standard_normal(count) * 2.0 ** rng.integers(-30, 40, count)
    values[: count // 2] = rng.integers(-600, 600, count // 2) / 2
    values[rng.integers(0, count, count // 16)] = rng.choice([np.nan, np.inf, -np.inf, 1e-40, -6e-8, 65519.9, 0.0], count // 16)
    with np.errstate(over="ignore"):
        return values.astype(kind)


@st.composite
def cast_forms(draw: st.DrawFn, lanes: int) -> Form:
    kind = draw(st.sampled_from(FORMS))
    block = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), 1)
    rounds = (8 * block[0] + draw(st.integers(0, 2)), draw(st.integers(0, 9)), 8)
    count = draw(st.integers(1, lanes if kind in ("lanes", "bits", "register") else 3 * lanes))
    return Form(kind, count, draw(st.integers(1, 2**lanes - 1)), draw(st.integers(0, 4)), block, rounds)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[1]} to {pair[0]}")
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 99))
def test_a_cast_gives_the_exact_value_rounded_once(pair: tuple[str, str], data: st.DataObject, seed: int) -> None:
    to, of = TYPES[pair[0]], TYPES[pair[1]]
    widths = (np.dtype(to).itemsize, np.dtype(of).itemsize)
    mode, form = data.draw(st.sampled_from(PAIRS[pair])), data.draw(cast_forms(256 // max(widths)))
    a, before = numbers(of, BYTES // widths[1], seed), numbers(to, BYTES // widths[0], seed + 100)
    into, taken = form.elements(max(widths), widths)
    expected = before.copy()
    with np.errstate(over="ignore"):
        expected[into] = np.array([cast(x, to, mode, to_whole=to == of) for x in a[taken]]).astype(to)
    words = np.array([*form.words(list(PAIRS).index(pair)), mode, *[0] * 17], np.int64).astype(np.int32)
    run = run_vector(SOURCE, a.view(np.uint8), words, before.view(np.uint8), inout=True)
    assert run.ok, run
    result = run.outputs[0].view(to)
    np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64), err_msg=f"{pair} {mode} {form}")
    if np.dtype(to).kind == "i":
        np.testing.assert_array_equal(result, expected)
