"""Compare and Select in all modes and forms: into UB, through the register, with masks, strides and special numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.forms import BINARY_PARAMS, READ, SET_REGISTER, TYPES, Form
from tests.simulator.kernels import gm, kernel, run_vector
from tests.simulator.test_vector_forms import numbers as all_numbers

few = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
MODES: dict[str, Callable] = {
    "LT": operator.lt, "GT": operator.gt, "EQ": operator.eq, "LE": operator.le, "GE": operator.ge, "NE": operator.ne,
}  # fmt: skip
PARAMS = f"BinaryRepeatParams {BINARY_PARAMS[18:].replace('(', 'params(', 1)};"
ELEMENTS = 4096  # of each operand
BITS = 2048  # bytes of masks
CASES = [
    "Compare(bd, a, b, CMPMODE(p[15]), p[2]);",
    "Compare(bd, a, b, CMPMODE(p[15]), p[2], p[7], params);",
    "CompareScalar(bd, a, DTYPE(scalar), CMPMODE(p[15]), p[2], p[7], UnaryRepeatParams(p[8], p[9], p[11], p[12]));",
    "Compares(bd, a, DTYPE(scalar), CMPMODE(p[15]), p[2]);",
    "REGISTER(Compare<DTYPE, SET>(a, b, CMPMODE(p[15]), LANES_, params);) PipeBarrier<PIPE_V>(); GetCmpMask(bd);",
    "REGISTER(Select<DTYPE, uint8_t, SET>(d, bits8, a, b, SELMODE::VSEL_CMPMASK_SPR, LANES_, p[7], params);)",
    "REGISTER(Select<DTYPE, uint8_t, SET>(d, bits8, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, LANES_, p[7], params);)",
    "REGISTER(Select<DTYPE, uint8_t, SET>(d, bits8, a, DTYPE(scalar), SELMODE::VSEL_TENSOR_SCALAR_MODE, LANES_, p[7], params);)",
    "SetCmpMask(bits8); PipeBarrier<PIPE_V>(); SetVectorMask<DTYPE>(~0ull, ~0ull);\n"
    "Select<DTYPE, SELMODE::VSEL_CMPMASK_SPR>(d, a, b, p[7], params);",
]
MASKS = (("true", "bits"), ("false", "MASK_PLACEHOLDER"), ("true", "p[2]"))


def masked(call: str) -> str:
    """REGISTER(call) in the form that p[1] says."""
    head, _, tail = call.partition("REGISTER(")
    if not tail:
        return call
    inner, _, rest = tail.partition(";)")
    bits, register, lanes = (inner.replace("SET", s).replace("LANES_", m) + ";" for s, m in MASKS)
    return f"{head} if (p[1] == 2) {{ {bits} }} else if (p[1] >= 4) {{ {register} }} else {{ {lanes} }} {rest}"


@cache
def source(dtype: str) -> str:
    cases = "".join(f"case {i}: {{ {masked(text)} break; }}\n" for i, text in enumerate(CASES)).replace("DTYPE", dtype)
    body = f"""{gm("A B C", dtype, ELEMENTS)} {gm("P", "int32_t", 32)} {gm("M", "uint8_t", BITS)} {READ}
LocalTensor<{dtype}> d(TPosition::VECCALC, 0, {ELEMENTS}), a(TPosition::VECCALC, 32768, {ELEMENTS});
LocalTensor<{dtype}> b(TPosition::VECCALC, 65536, {ELEMENTS}); LocalTensor<uint8_t> bits8(TPosition::VECCALC, 98304, {BITS});
auto bd = d.template ReinterpretCast<uint8_t>(); float scalar; __builtin_memcpy(&scalar, &p[14], 4); {PARAMS}
DataCopy(d, gmC, {ELEMENTS}); DataCopy(a, gmA, {ELEMENTS}); DataCopy(b, gmB, {ELEMENTS}); DataCopy(bits8, gmM, {BITS});
ORDER(MTE2_V);
{SET_REGISTER.replace("TYPE", dtype)}
switch (p[0]) {{
{cases}}}
SetMaskNorm(); ResetMask(); ORDER(V_MTE3); DataCopy(gmC, d, {ELEMENTS});
"""
    return kernel("A B M P C", "AIV_ONLY", body.replace(".template ", "."))


class Data:
    """The operands of one run."""

    def __init__(self, dtype: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.dtype, self.kind = dtype, TYPES[dtype]
        self.a, self.b, self.before = (all_numbers(dtype, 3 * seed + i)[:ELEMENTS] for i in range(3))
        self.b = np.where(rng.random(ELEMENTS) < 0.3, self.a, self.b)
        self.bits = rng.integers(0, 256, BITS).astype(np.uint8)
        self.scalar = float(self.kind(rng.integers(-8, 8) / 2))
        self.lanes = 256 // np.dtype(self.kind).itemsize

    def bit(self, index: np.ndarray) -> np.ndarray:
        return np.unpackbits(self.bits, bitorder="little").astype(bool)[index]

    def run(self, case: int, form: Form, mode: int = 0) -> np.ndarray:
        words = [*form.words(case), int(np.float32(self.scalar).view(np.int32)), mode]
        p = np.array([*words, *[0] * (32 - len(words))], np.int64).astype(np.int32)
        done = run_vector(source(self.dtype), self.a, self.b, self.bits, p, self.before, inout=True)
        assert done.ok, done
        return done.outputs[0]


def strides(draw: Callable) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    block = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    return block, (8 * block[0] + draw(st.integers(0, 2)), draw(st.integers(0, 12)), draw(st.integers(0, 12)))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["half", "float"])
@few
@given(data=st.data(), mode=st.sampled_from(list(MODES)), repeat=st.integers(1, 6), seed=st.integers(0, 99))
def test_compare_gives_all_bits_of_its_rounds(dtype: str, data: st.DataObject, mode: str, repeat: int, seed: int) -> None:
    """Whatever the mask: it has no effect on this architecture."""
    x, case = Data(dtype, seed), data.draw(st.integers(0, 3))
    block, rounds = strides(data.draw)
    contiguous = case in (0, 3)
    form = Form("count" if contiguous else "lanes", x.lanes * repeat if contiguous else 5, 0, repeat, block, rounds)
    places = [np.arange(x.lanes * repeat)] * 2
    if not contiguous:
        r, lane = np.divmod(np.arange(x.lanes * repeat), x.lanes)
        places = [form.place(side, r, lane, x.lanes // 8) for side in (1, 2)]
    right = np.full(len(places[0]), x.scalar, x.kind) if case > 1 else x.b[places[1]]
    wanted = np.packbits(MODES[mode](x.a[places[0]], right), bitorder="little")
    result = x.run(case, form, list(MODES).index(mode)).view(np.uint8)
    np.testing.assert_array_equal(result[: len(wanted)], wanted, err_msg=f"{case} {mode} {form}")
    np.testing.assert_array_equal(result[len(wanted) :], x.before.view(np.uint8)[len(wanted) :])


KINDS = ("lanes", "bits", "counter", "register", "counter register")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["half", "float"])
@few
@given(data=st.data(), mode=st.sampled_from(list(MODES)), seed=st.integers(0, 99))
def test_the_register_takes_one_round_and_zeros_beside_its_lanes(dtype: str, data: st.DataObject, mode: str, seed: int) -> None:
    x = Data(dtype, seed)
    count, bits = data.draw(st.integers(1, x.lanes)), data.draw(st.integers(1, 2**x.lanes - 1))
    form = Form(data.draw(st.sampled_from(KINDS)), count, bits, 1, *strides(data.draw))
    lane = form.active(x.lanes)
    left, right = (form.place(side, np.zeros_like(lane), lane, x.lanes // 8) for side in (1, 2))
    wanted = np.zeros(128, bool)
    wanted[lane] = MODES[mode](x.a[left], x.b[right])
    result = x.run(4, form, list(MODES).index(mode)).view(np.uint8)[:16]
    np.testing.assert_array_equal(np.unpackbits(result, bitorder="little").astype(bool), wanted, err_msg=f"{mode} {form}")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["half", "float"])
@few
@given(data=st.data(), seed=st.integers(0, 99))
def test_select_takes_the_same_bits_each_round_or_goes_on_through_them(dtype: str, data: st.DataObject, seed: int) -> None:
    x, case = Data(dtype, seed), data.draw(st.integers(5, 8))
    kind = data.draw(st.sampled_from(KINDS)) if case < 8 else "lanes"
    count = data.draw(st.integers(1, x.lanes * (4 if kind.startswith("counter") else 1))) if case < 8 else x.lanes
    form = Form(kind, count, data.draw(st.integers(1, 2**x.lanes - 1)), data.draw(st.integers(1, 4)), *strides(data.draw))
    rounds, lane = np.divmod(form.active(x.lanes), x.lanes)
    to, left, right = (form.place(side, rounds, lane, x.lanes // 8) for side in range(3))
    bit = x.bit(lane if case in (5, 8) else rounds * x.lanes + lane)
    other = np.full(len(to), x.scalar, x.kind) if case == 7 else x.b[right]
    expected = x.before.copy()
    expected[to] = np.where(bit, x.a[left], other)
    np.testing.assert_array_equal(x.run(case, form), expected, err_msg=f"{case} {form}")
