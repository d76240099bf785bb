"""Reductions of rounds, blocks and neighbours against NumPy, under every kind of mask, with strides and special numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.forms import ELEMENTS, READ, SET_REGISTER, Form
from tests.simulator.kernels import gm, kernel, run_vector
from tests.simulator.test_vector_forms import numbers

pytestmark = pytest.mark.slow(but=3)

KINDS = ("lanes", "bits", "counter", "register", "counter register")
CALLS = {
    "ReduceRepeat": ("ReduceType::SUM", "ReduceType::MAX", "ReduceType::MIN"),
    "ReduceDataBlock": ("ReduceType::SUM", "ReduceType::MAX", "ReduceType::MIN"),
    "ReducePairElem": ("ReduceType::SUM",),
}
INSTRUCTIONS = tuple((name, op) for name, ops in CALLS.items() for op in ops)


def source(dtype: str) -> str:
    """p[8] is the destination's stride, p[9] the source's block stride, p[12] its repeat stride."""
    cases = ""
    for number, (name, op) in enumerate(INSTRUCTIONS):
        call = f"{name}<{op}, {dtype}, {dtype}, SET>(dst, a, MASK, p[7], p[8], p[9], p[12]);"
        bits, register, lanes = (call.replace("SET", s).replace("MASK", m) for s, m in MASKS)
        cases += f"case {number}: if (p[1] == 2) {{ {bits} }} else if (p[1] >= 4) {{ {register} }} else {{ {lanes} }} break;\n"
    body = f"""{gm("A C", dtype, ELEMENTS)} {gm("P", "int32_t", 32)} {READ}
LocalTensor<{dtype}> dst(TPosition::VECCALC, 0, {ELEMENTS}), a(TPosition::VECCALC, 65536, {ELEMENTS});
DataCopy(dst, gmC, {ELEMENTS}); DataCopy(a, gmA, {ELEMENTS}); ORDER(MTE2_V);
{SET_REGISTER.replace("TYPE", dtype)}
switch (p[0]) {{
{cases}}}
SetMaskNorm(); ResetMask(); ORDER(V_MTE3); DataCopy(gmC, dst, {ELEMENTS});
"""
    return kernel("A P C", "AIV_ONLY", body)


MASKS = (("true", "bits"), ("false", "MASK_PLACEHOLDER"), ("true", "p[2]"))


def tree(values: np.ndarray) -> np.floating:
    while len(values) > 1:
        values = (values[0::2].astype(np.float64) + values[1::2]).astype(values.dtype)
    return values[0]


def best(values: np.ndarray, op: str) -> int:
    """The first NaN, or else the first of the largest or smallest."""
    return int(np.argmax(values) if op == "ReduceType::MAX" else np.argmin(values))


def reduce_round(name: str, op: str, values: np.ndarray, active: np.ndarray, lanes: int) -> list[tuple[int, list]]:
    """(place, elements) that one round gives; `values` of all `lanes`, of which `active` take part."""
    group = {"ReduceRepeat": lanes, "ReduceDataBlock": lanes // 8, "ReducePairElem": 2}[name]
    results: list[tuple[int, list]] = []
    for g in range(lanes // group):
        here = active[(active >= g * group) & (active < (g + 1) * group)]
        if not len(here):
            continue
        if op == "ReduceType::SUM":
            padded = np.zeros(group, values.dtype)
            padded[here - g * group] = values[here]
            results.append((g, [tree(padded)]))
            continue
        lane = here[best(values[here], op)]
        index = np.array([lane], np.uint16 if values.itemsize == 2 else np.uint32).view(values.dtype)[0]
        results.append((g, [values[lane], index] if name == "ReduceRepeat" else [values[lane]]))
    return results


def expect(name: str, op: str, form: Form, a: np.ndarray, before: np.ndarray) -> np.ndarray:
    expected, lanes = before.copy(), 256 // a.itemsize
    rounds, lane = np.divmod(form.active(lanes), lanes)
    pair = name == "ReduceRepeat" and op != "ReduceType::SUM"
    a_round = {"ReduceRepeat": 2 if pair else 1, "ReduceDataBlock": 8, "ReducePairElem": lanes // 2}[name]
    for r in np.unique(rounds):
        values = a[form.place(1, np.full(lanes, r), np.arange(lanes), 32 // a.itemsize)]
        for place, elements in reduce_round(name, op, values, lane[rounds == r], lanes):
            at = r * form.block[0] * a_round + place * len(elements)
            expected[at : at + len(elements)] = elements
    return expected


@st.composite
def reduction_forms(draw: st.DrawFn, lanes: int) -> Form:
    kind, rounds = draw(st.sampled_from(KINDS)), draw(st.integers(1, 8))
    count = draw(st.integers(1, lanes * 8 if kind.startswith("counter") else lanes))
    strides = (draw(st.integers(1, 3)), draw(st.integers(1, 3)), 1)
    return Form(kind, count, draw(st.integers(1, 2**lanes - 1)), rounds, strides, (8, draw(st.integers(0, 24)), 8))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["half", "float"])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 99))
def test_reductions_see_the_lanes_of_their_mask_only(dtype: str, data: st.DataObject, seed: int) -> None:
    number = data.draw(st.integers(0, len(INSTRUCTIONS) - 1))
    form = data.draw(reduction_forms(128 if dtype == "half" else 64))
    a, before = numbers(dtype, 2 * seed), numbers(dtype, 2 * seed + 1)
    words = np.array([*form.words(number), *[0] * 18], np.int64).astype(np.int32)
    run = run_vector(source(dtype), a, words, before, inout=True)
    assert run.ok, run
    with np.errstate(all="ignore"):
        expected = expect(*INSTRUCTIONS[number], form, a, before)
    np.testing.assert_array_equal(run.outputs[0], expected, err_msg=f"{INSTRUCTIONS[number]} {form}")


SMALL = f"""{gm("A C", "float", 512)} LocalTensor<float> x(TPosition::VECCALC, 0, 512), z(TPosition::VECCALC, 4096, 512);
LocalTensor<float> scratch(TPosition::VECCALC, 8192, 512);
DataCopy(x, gmA, 512); DataCopy(z, gmC, 512); ORDER(MTE2_V);
"""
A = np.random.default_rng(0).standard_normal(512).astype(np.float32)


def small(body: str, tail: str = "ORDER(V_MTE3); DataCopy(gmC, z, 512);") -> tuple[np.ndarray, list[str]]:
    run = run_vector(kernel("A C", "AIV_ONLY", SMALL + body + tail), A, np.zeros(512, np.float32), inout=True)
    return run.outputs[0] if run.outputs else np.zeros(0), [f.kind for f in run.findings]


def test_a_masked_maximum_of_everything_is_not_taken_for_one_of_the_first_elements() -> None:
    result, findings = small(
        "ReduceMax(z, x, scratch, 10, 4, 8); PipeBarrier<PIPE_V>(); ReduceMin(z[8], x, scratch, 10, 4, 8, true);"
    )
    rows = A[:256].reshape(4, 64)[:, :10]
    assert not findings
    assert result[0] == rows.max()
    assert result[8] == rows.min()
    assert result[9:10].view(np.uint32)[0] == np.flatnonzero(rows.min() == A)[0]


def test_two_words_set_the_counter_and_their_second_one_counts() -> None:
    result, findings = small(
        "SetMaskCount(); SetVectorMask<float>(0, 100);\n"
        "ReduceRepeat<ReduceType::MAX, float, float, false>(z, x, MASK_PLACEHOLDER, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);\n"
        "SetMaskNorm(); ResetMask();"
    )
    assert not findings
    np.testing.assert_array_equal(result[:3], [A[:64].max(), A[64:100].max(), 0])


def test_a_reduction_may_put_its_results_where_its_first_round_lies() -> None:
    result, findings = small(
        "WholeReduceSum(x, x, 64, 8, 1, 1, 8); PipeBarrier<PIPE_V>(); Muls(z, x, 1.0f, 8);",
    )
    assert not findings
    np.testing.assert_allclose(result[:8], A.reshape(8, 64).sum(1), rtol=1e-4, atol=1e-4)


def test_a_result_in_the_way_of_a_later_round_is_reported() -> None:
    assert small("WholeReduceSum(x[64], x, 64, 8, 1, 1, 8);")[1] == ["overlap"]


@pytest.mark.parametrize("setting", ["SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(128);", ""])
def test_the_register_of_the_extreme_knows_nothing_of_counter_mode_and_strides(setting: str) -> None:
    stride = 8 if setting else 4
    call = f"WholeReduceMax<float, false>(z, x, MASK_PLACEHOLDER, 2, 1, 1, {stride}); SetMaskNorm(); ResetMask();"
    _, findings = small(f"{setting}{call} ORDER(V_S); float v, i; GetReduceRepeatMaxMinSpr(v, i);")
    assert findings == ["uninitialised"]


@pytest.mark.parametrize(
    "setting", ["SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(100);", "SetVectorMask<float>(40);"]
)
def test_forms_over_the_first_elements_may_take_the_register_too(setting: str) -> None:
    """Their count means nothing then: in counter mode the register has one, in normal mode the lanes of one round."""
    result, findings = small(
        f"""{setting} Adds<float, false>(z, x, 2.0f, 1); PipeBarrier<PIPE_V>();
ReduceSum<float, false>(z[128], x, scratch, 1); SetMaskNorm(); ResetMask();"""
    )
    count = 100 if "COUNTER" in setting else 40
    assert not findings
    np.testing.assert_array_equal(result[:128], np.where(np.arange(128) < count, A[:128] + np.float32(2), 0))
    rounds = [np.pad(A[r : min(r + 64, count)], (0, 64 - len(A[r : min(r + 64, count)]))) for r in range(0, count, 64)]
    assert result[128] == sum((tree(r) for r in rounds[1:]), tree(rounds[0]))
