"""Copies inside UB and between GM and UB, against NumPy: masks, counter mode, slices, padding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.simulator.forms import ELEMENTS, READ, SET_REGISTER, Form
from tests.simulator.kernels import gm, kernel, run_vector

pytestmark = pytest.mark.slow(but=3)

few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def copy_source(dtype: str) -> str:
    params = "CopyRepeatParams(p[8], p[9], p[11], p[12])"
    body = f"""{gm("A C", dtype, ELEMENTS)} {gm("P", "int32_t", 32)} {READ}
LocalTensor<{dtype}> dst(TPosition::VECCALC, 0, {ELEMENTS}), a(TPosition::VECCALC, 65536, {ELEMENTS});
DataCopy(dst, gmC, {ELEMENTS}); DataCopy(a, gmA, {ELEMENTS}); ORDER(MTE2_V);
{SET_REGISTER.replace("TYPE", dtype)}
if (p[1] == 2) {{ Copy(dst, a, bits, p[7], {params}); }}
else if (p[1] >= 4) {{ Copy<{dtype}, false>(dst, a, MASK_PLACEHOLDER, p[7], {params}); }}
else {{ Copy(dst, a, p[2], p[7], {params}); }}
SetMaskNorm(); ResetMask(); ORDER(V_MTE3); DataCopy(gmC, dst, {ELEMENTS});
"""
    return kernel("A P C", "AIV_ONLY", body)


@st.composite
def copies(draw: st.DrawFn, lanes: int) -> Form:
    kind = draw(st.sampled_from(("lanes", "bits", "counter", "register", "counter register")))
    count = draw(st.integers(1, lanes * 3 if kind.startswith("counter") else lanes))
    block, bits = (draw(st.integers(1, 2)), draw(st.integers(1, 4)), 1), draw(st.integers(1, 2**lanes - 1))
    return Form(kind, count, bits, draw(st.integers(0, 5)), block, (24 * block[0], draw(st.integers(0, 20)), 8))


def copied(form: Form, a: np.ndarray, before: np.ndarray) -> np.ndarray:
    """In counter mode, each of `repeat` rounds takes the first elements, however many blocks they fill (Copy.md)."""
    expected, lanes = before.copy(), 256 // a.itemsize
    rounds, lane = np.divmod(form.active(lanes), lanes)
    if form.kind.startswith("counter"):
        rounds, lane = np.divmod(np.arange(form.repeat * form.lanes), form.lanes)
    block = 32 // a.itemsize
    expected[form.place(0, rounds, lane, block)] = a[form.place(1, rounds, lane, block)]
    return expected


def copy(dtype: str, form: Form, a: np.ndarray, before: np.ndarray) -> np.ndarray:
    words = np.array([*form.words(0), *[0] * 18], np.int64).astype(np.int32)
    run = run_vector(copy_source(dtype), a, words, before, inout=True)
    assert run.ok, run
    return run.outputs[0]


@pytest.mark.parametrize(("dtype", "kind"), [("int16_t", np.int16), ("int32_t", np.int32)])
@few
@given(data=st.data())
def test_copy_counts_the_elements_of_each_round_in_counter_mode(dtype: str, kind: type, data: st.DataObject) -> None:
    form = data.draw(copies(256 // np.dtype(kind).itemsize))
    a, before = np.arange(ELEMENTS, dtype=kind), np.full(ELEMENTS, -1, kind)
    np.testing.assert_array_equal(copy(dtype, form, a, before), copied(form, a, before), err_msg=str(form))


def test_copy_takes_one_block_of_each_row_as_the_public_sample_does() -> None:
    """18 rows of 64: 144 elements of one round, whose blocks lie eight apart."""
    form = Form("counter register", 144, 0, 1, (1, 8, 1), (8, 8, 8))
    a = np.arange(ELEMENTS, dtype=np.int32)
    result = copy("int32_t", form, a, np.zeros(ELEMENTS, np.int32))[:144].reshape(18, 8)
    np.testing.assert_array_equal(result, a[: 18 * 64].reshape(18, 64)[:, :8])


def source_of(body: str, dtype: str = "float") -> str:
    text = (
        f"{gm('A C', dtype, ELEMENTS)} {gm('P', 'int32_t', 32)} int p[32]; for (int i = 0; i < 32; ++i) p[i] = gmP.GetValue(i);\n"
    )
    return kernel("A P C", "AIV_ONLY", text + body)


def run(source: str, words: list[int], a: np.ndarray, before: np.ndarray) -> np.ndarray:
    done = run_vector(source, a, np.array([*words, *[0] * (32 - len(words))], np.int32), before, inout=True)
    assert done.ok, done
    return done.outputs[0]


SLICES = source_of("""LocalTensor<float> x(TPosition::VECCALC, 0, 4096);
SliceInfo in[] = {{uint32_t(p[0]), uint32_t(p[1]), uint32_t(p[2]), uint32_t(p[3]), 64},
                  {uint32_t(p[4]), uint32_t(p[5]), uint32_t(p[6]), 1, 64}};
SliceInfo packed[] = {{0, uint32_t(p[7]) - 1, 0, uint32_t(p[3]), uint32_t(p[7])}, {0, uint32_t(p[8]) - 1, 0, 1, uint32_t(p[8])}};
if (p[9]) { DataCopy(x, gmA, in, packed, 2); } else { DataCopy(x, gmA, packed, in, 2); }
ORDER(MTE2_MTE3);
if (p[9]) { DataCopy(gmC, x, packed, in, 2); } else { DataCopy(gmC, x, p[7] * p[8]); }
""")


@few
@given(data=st.data(), back=st.booleans())
def test_slices_move_runs_of_a_row_and_some_of_the_rows(data: st.DataObject, back: bool) -> None:
    """A is 64 x 64; what the slices take is packed in UB, or packed rows are spread in UB and taken from there."""
    burst, runs = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    gap, start = 8 * data.draw(st.integers(0, 2)), 8 * data.draw(st.integers(0, 1))
    first, rows, skip = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 5)), data.draw(st.integers(0, 3))
    length = runs * burst * 8
    assume(start + length + (runs - 1) * gap <= 64)
    end, last = start + length + (runs - 1) * gap - 1, first + (rows - 1) * (skip + 1)
    columns = np.concatenate([start + r * (8 * burst + gap) + np.arange(8 * burst) for r in range(runs)])
    taken = np.arange(first, last + 1, skip + 1)
    a, before = np.arange(ELEMENTS, dtype=np.float32), np.full(ELEMENTS, -1, np.float32)
    result = run(SLICES, [start, end, gap, burst, first, last, skip, length, rows, int(back)], a, before)
    picked = a[: rows * length] if back else a[:4096].reshape(64, 64)[np.ix_(taken, columns)].ravel()
    np.testing.assert_array_equal(result[: rows * length], picked)
    np.testing.assert_array_equal(result[rows * length :], -1)


OLD_PAD = source_of("""LocalTensor<float> x(TPosition::VECCALC, 0, 4096); Duplicate(x, -2.0f, 4096); ORDER(V_MTE2);
uint64_t value = 0; float seven = 7.0f; __builtin_memcpy(&value, &seven, 4);
DataCopyPad(x, gmA[1], DataCopyParams(p[0], p[1] * 4, p[2] * 4, p[3]), DataCopyPadParams(true, p[4], p[5], value));
ORDER(MTE2_MTE3);
if (p[6]) { DataCopyPad(gmC[1], x, DataCopyParams(p[0], p[1] * 4, p[3], p[2] * 4)); } else { DataCopy(gmC, x, 4096); }
""")


@few
@given(
    rows=st.integers(1, 6), cols=st.integers(1, 30), gap=st.integers(0, 9), blocks=st.integers(0, 2), left=st.integers(0, 7),
    right=st.integers(0, 7),
)  # fmt: skip
def test_the_older_padded_copy_pads_on_both_sides(rows: int, cols: int, gap: int, blocks: int, left: int, right: int) -> None:
    a, before = np.arange(ELEMENTS, dtype=np.float32), np.full(ELEMENTS, -1, np.float32)
    pitch = -(-(left + cols + right) // 8) * 8 + 8 * blocks
    expected = np.full(4096, -2, np.float32)
    for r in range(rows):
        row = expected[r * pitch : r * pitch + pitch - 8 * blocks]
        held = a[1 + r * (cols + gap) : 1 + r * (cols + gap) + cols]
        row[:] = 7 if left or right else held[0]  # without padding, the hardware repeats the first element
        row[left : left + cols] = held
    np.testing.assert_array_equal(run(OLD_PAD, [rows, cols, gap, blocks, left, right, 0], a, before)[:4096], expected)


@few
@given(rows=st.integers(1, 6), cols=st.integers(1, 30), gap=st.integers(0, 9), blocks=st.integers(0, 2))
def test_the_older_padded_copy_goes_back_the_same_way(rows: int, cols: int, gap: int, blocks: int) -> None:
    a, before = np.arange(ELEMENTS, dtype=np.float32), np.full(ELEMENTS, -1, np.float32)
    expected = before.copy()
    for r in range(rows):
        at = 1 + r * (cols + gap)
        expected[at : at + cols] = a[at : at + cols]
    np.testing.assert_array_equal(run(OLD_PAD, [rows, cols, gap, blocks, 0, 0, 1], a, before), expected)


ATOMIC_TYPES = {"float": np.float32, "half": np.float16, "int32_t": np.int32, "int16_t": np.int16, "int8_t": np.int8}
ATOMIC_OPS = {"Add": np.add, "Max": np.maximum, "Min": np.minimum}


@pytest.mark.parametrize("dtype", ATOMIC_TYPES)
@pytest.mark.parametrize("op", ATOMIC_OPS)
def test_an_atomic_store_combines_with_what_is_in_gm(op: str, dtype: str) -> None:
    kind, rng = ATOMIC_TYPES[dtype], np.random.default_rng(3)
    body = f"""{gm("A C", dtype, 4096)} LocalTensor<{dtype}> x(TPosition::VECCALC, 0, 4096);
DataCopy(x, gmA, 4096); ORDER(MTE2_MTE3); SetAtomic{op}<{dtype}>();
DataCopyPad(gmC, x, DataCopyExtParams(1, 77 * sizeof({dtype}), 0, 0, 0));
SetAtomicNone(); DataCopy(gmC[128], x[128], 3968);"""
    low, high = (-30000, 30000) if kind == np.float16 else (-60, 60)
    a, before = (rng.integers(low, high, 4096).astype(kind) for _ in range(2))
    done = run_vector(kernel("A C", "AIV_ONLY", body), a, before, inout=True)
    assert done.ok, done
    expected = before.copy()
    expected[:77], expected[128:] = ATOMIC_OPS[op](before[:77], a[:77]), a[128:]
    np.testing.assert_array_equal(done.outputs[0], expected)


@pytest.mark.parametrize(
    "setting", ["SetStoreAtomicConfig<AtomicDtype::ATOMIC_S32, AtomicOp::ATOMIC_SUM>();", "SetAtomicType<int32_t>();"]
)
def test_the_older_settings_of_atomic_stores(setting: str) -> None:
    body = f"""{gm("C", "int32_t", 64)} LocalTensor<int32_t> x(TPosition::VECCALC, 0, 64); Duplicate(x, 3, 64); ORDER(V_MTE3);
SetAtomicAdd<float>(); {setting} uint16_t type, op; GetStoreAtomicConfig(type, op); DataCopy(gmC, x, 32);
SetStoreAtomicConfig<AtomicDtype::ATOMIC_NONE, AtomicOp::ATOMIC_SUM>(); ORDER(MTE3_S);
x.SetValue(0, type); ORDER(S_MTE3); DataCopy(gmC[32], x, 8);"""
    done = run_vector(kernel("C", "AIV_ONLY", body), np.arange(64, dtype=np.int32), inout=True)
    assert done.ok, done
    expected = np.arange(64)
    expected[:32] += 3
    expected[32:40] = [4, 3, 3, 3, 3, 3, 3, 3]
    np.testing.assert_array_equal(done.outputs[0], expected)
