"""Copies inside UB and between GM and UB, against NumPy: masks, counter mode, slices, padding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.forms import ELEMENTS, READ, SET_REGISTER, Form
from tests.simulator.kernels import gm, kernel, run_vector

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
