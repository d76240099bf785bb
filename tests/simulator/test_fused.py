"""Instructions that compute and convert at once: quantisation by the DEQSCALE register, products and sums that end narrower."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.forms import BINARY_PARAMS, READ, SET_REGISTER, UNARY_PARAMS, Form
from tests.simulator.kernels import gm, kernel, run_vector
from tests.simulator.test_vector_forms import numbers

pytestmark = pytest.mark.slow(but=3)

few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
BYTES, LANES = 16384, 128
KINDS = ("lanes", "bits", "counter", "register", "counter register")
BINARY = (
    ("MulCast", "int8_t", "half"),
    ("MulCast", "uint8_t", "half"),
    ("AddReluCast", "int8_t", "half"),
    ("SubReluCast", "int8_t", "int16_t"),
)


def source(before: str, calls: list[str]) -> str:
    """`calls` of the form name<types|SET>(operands, MASK, p[7], params), chosen by p[0]."""
    cases = ""
    for number, call in enumerate(calls):
        forms = [call.replace("SET", s).replace("MASK", m) for s, m in MASKS]
        cases += (
            f"case {number}: if (p[1] == 2) {{ {forms[0]} }} else if (p[1] >= 4) {{ {forms[1]} }} else {{ {forms[2]} }} break;\n"
        )
    body = f"""{gm("A B C S", "uint8_t", BYTES)} {gm("P", "int32_t", 32)} {READ}
LocalTensor<uint8_t> d(TPosition::VECCALC, 0, {BYTES}), a(TPosition::VECCALC, {BYTES}, {BYTES});
LocalTensor<uint8_t> b(TPosition::VECCALC, {2 * BYTES}, {BYTES}), s(TPosition::VECCALC, {3 * BYTES}, {BYTES});
DataCopy(d, gmC, {BYTES}); DataCopy(a, gmA, {BYTES}); DataCopy(b, gmB, {BYTES}); DataCopy(s, gmS, {BYTES}); ORDER(MTE2_V);
{SET_REGISTER.replace("TYPE", "half")} {before}
switch (p[0]) {{
{cases}}}
SetMaskNorm(); ResetMask(); ORDER(V_MTE3); DataCopy(gmC, d, {BYTES});
"""
    return kernel("A B S P C", "AIV_ONLY", body)


MASKS = (("true", "bits"), ("false", "MASK_PLACEHOLDER"), ("true", "p[2]"))


def run(text: str, number: int, form: Form, tail: list[int], *arrays: np.ndarray) -> np.ndarray:
    """`arrays`: A, B, S and what is there before."""
    words = np.array([*form.words(number), *tail, *[0] * (18 - len(tail))], np.int64).astype(np.int32)
    raw = [np.resize(x.view(np.uint8), BYTES) for x in arrays]
    done = run_vector(text, *raw[:3], words, raw[3], inout=True)
    assert done.ok, done
    return done.outputs[0]


@st.composite
def fused_forms(draw: st.DrawFn, spread: int) -> Form:
    kind = draw(st.sampled_from(KINDS))
    block = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    rounds = (spread * block[0] + draw(st.integers(0, 2)), draw(st.integers(0, 12)), draw(st.integers(0, 12)))
    count = draw(st.integers(1, 3 * LANES if kind.startswith("counter") else LANES))
    return Form(kind, count, draw(st.integers(1, 2**LANES - 1)), draw(st.integers(0, 4)), block, rounds)


def operand(name: str, dtype: str) -> str:
    return f"{name}.ReinterpretCast<{dtype}>()"


BINARY_CALLS = [
    f"{name}<{out}, {of}, SET>({operand('d', out)}, {operand('a', of)}, {operand('b', of)}, MASK, p[7], {BINARY_PARAMS});"
    for name, out, of in BINARY
]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BINARY)))
@few
@given(data=st.data(), seed=st.integers(0, 99))
def test_products_and_sums_are_rounded_to_their_type_then_converted(number: int, data: st.DataObject, seed: int) -> None:
    form, (name, out_type, dtype) = data.draw(fused_forms(4)), BINARY[number]
    out = np.uint8 if out_type == "uint8_t" else np.int8
    a, b = numbers(dtype, seed), numbers(dtype, seed + 50)
    before = np.random.default_rng(seed).integers(0, 255, BYTES).astype(out)
    to, left, right = form.elements(2, (1, 2, 2))
    with np.errstate(all="ignore"):
        x, y = (v.astype(np.float64) if dtype == "half" else v for v in (a[left], b[right]))
        held = {"MulCast": x * y, "AddReluCast": x + y, "SubReluCast": x - y}[name].astype(a.dtype).astype(np.float64)
        held = held if name == "MulCast" else np.where(held < 0, 0, held)
        info = np.iinfo(out)
        narrowed = np.clip(np.rint(np.nan_to_num(held, nan=0.0)), info.min, info.max).astype(out)
    expected = before.copy()
    expected[to] = narrowed
    result = run(source("", BINARY_CALLS), number, form, [], a, b, a, before).view(out)
    np.testing.assert_array_equal(result, expected, err_msg=f"{name} {form}")


def ten_bits(scale: np.ndarray) -> np.ndarray:
    """The hardware keeps 10 bits of a scale's mantissa."""
    return (scale.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


TABLE = """float scales[16]; int16_t offsets[16]; bool signs[16];
GlobalTensor<float> gmF; gmF.SetGlobalBuffer((__gm__ float*)S, 64);
for (int i = 0; i < 16; ++i) { scales[i] = gmF.GetValue(i); offsets[i] = p[15]; signs[i] = true; }
LocalTensor<uint64_t> vdeq(TPosition::VECCALC, 131072, 16); VdeqInfo info(scales, offsets, signs);
if (p[0] < 2) { SetDeqScale(vdeq, info); ORDER(S_V); } else SetDeqScale(scales[0], p[15], p[0] == 2);
"""
DEQUANT_FORMS = (
    ("int8_t", "true", "true"),
    ("int8_t", "true", "false"),
    ("int8_t", "false", "true"),
    ("uint8_t", "false", "false"),
)
DEQUANT = [
    f"CastDequant<{out}, int16_t, SET, {table}, {half}>({operand('d', out)}, {operand('a', 'int16_t')}, MASK, p[7], "
    f"{UNARY_PARAMS});"
    for out, table, half in DEQUANT_FORMS
]


@pytest.mark.parametrize("number", range(4))
@few
@given(data=st.data(), offset=st.integers(-256, 255), seed=st.integers(0, 99))
def test_sixteen_numbers_of_a_block_become_bytes_in_one_half_of_a_block(
    number: int, data: st.DataObject, offset: int, seed: int
) -> None:
    form, rng = data.draw(fused_forms(8)), np.random.default_rng(seed)
    out, high = (np.uint8 if number == 3 else np.int8), number in (0, 2)
    a = rng.integers(-3000, 3000, BYTES // 2).astype(np.int16)
    scales = rng.uniform(0.01, 0.3, 16).astype(np.float32)
    before = rng.integers(0, 255, BYTES).astype(out)
    rounds, lane = np.divmod(form.active(LANES), LANES)
    into = (rounds * form.round[0] + lane // 16 * form.block[0]) * 32 + 16 * high + lane % 16
    scale = ten_bits(scales)[lane % 16 if number < 2 else np.zeros_like(lane)]
    info = np.iinfo(out)
    expected = before.copy()
    value = a[form.place(1, rounds, lane, 16)] * scale.astype(np.float64) + offset
    expected[into] = np.clip(np.rint(value), info.min, info.max).astype(out)
    result = run(source(TABLE, DEQUANT), number, form, [0, offset], a, a, scales, before).view(out)
    np.testing.assert_array_equal(result, expected, err_msg=str(form))


ADD_DEQ = [
    f"AddDeqRelu<half, int32_t, SET>({operand('d', 'half')}, {operand('a', 'int32_t')}, {operand('b', 'int32_t')}, MASK, p[7], "
    f"{BINARY_PARAMS});"
]


@few
@given(data=st.data(), seed=st.integers(0, 99))
def test_sums_of_whole_numbers_are_scaled_and_cut_at_zero(data: st.DataObject, seed: int) -> None:
    kind, rng = data.draw(st.sampled_from(KINDS)), np.random.default_rng(seed)
    form = Form(kind, data.draw(st.integers(1, 64)), data.draw(st.integers(1, 2**64 - 1)), 2, (1, 1, 1), (4, 8, 8))
    a, b = (rng.integers(-100000, 100000, BYTES // 4).astype(np.int32) for _ in range(2))
    before = rng.standard_normal(BYTES // 2).astype(np.float16)
    to, left, right = form.elements(4, (2, 4, 4))
    expected = before.copy()
    with np.errstate(over="ignore"):
        expected[to] = np.maximum((a[left] + b[right]) * 0.5, 0).astype(np.float16)
    result = run(source("SetDeqScale(half(0.5f));", ADD_DEQ), 0, form, [], a, b, a, before).view(np.float16)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("setting", "kind"),
    [("SetDeqScale(0.5f, 3, true);", "field"), ("SetDeqScale(half(0.5f));", ""), ("", "uninitialised")],
)
def test_the_register_must_hold_the_kind_of_scale_that_an_instruction_takes(setting: str, kind: str) -> None:
    body = f"""LocalTensor<int32_t> a(TPosition::VECCALC, 0, 64); LocalTensor<half> d(TPosition::VECCALC, 4096, 64);
Duplicate(a, 5, 64); PipeBarrier<PIPE_V>(); {setting} Cast(d, a, RoundMode::CAST_NONE, 64);"""
    done = run_vector(kernel("A", "AIV_ONLY", body), np.zeros(8, np.float32))
    assert [f.kind for f in done.findings] == [kind] * bool(kind)
