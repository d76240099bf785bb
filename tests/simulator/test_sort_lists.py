"""Sorted lists: by 32, all of them, and what is taken out of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.kernels import gm, kernel, run_vector

N = 2048
KINDS = {"half": np.float16, "float": np.float32}


def source(dtype: str) -> str:
    body = f"""{gm("A V", dtype, N)} {gm("I", "uint32_t", N)} {gm("P", "int32_t", 8)}
LocalTensor<{dtype}> a(TPosition::VECCALC, 0, {N}), value(TPosition::VECCALC, 8192, {N}), scores;
LocalTensor<uint32_t> index(TPosition::VECCALC, 16384, {N}), out(TPosition::VECCALC, 24576, {N});
LocalTensor<{dtype}> sorted(TPosition::VECCALC, 32768, {N * 8} / sizeof({dtype}));
LocalTensor<{dtype}> tmp(TPosition::VECCALC, 65536, {N * 8} / sizeof({dtype}));
int repeat = gmP.GetValue(0), full = gmP.GetValue(1);
DataCopy(a, gmA, {N}); DataCopy(value, gmV, {N}); DataCopy(out, gmI, {N}); ORDER(MTE2_V);
CreateVecIndex(index.ReinterpretCast<int32_t>(), 0, {N});
PipeBarrier<PIPE_V>();
Concat(scores, a, tmp, 1);
if (full) Sort<{dtype}, true>(sorted, scores, index, tmp, repeat); else Sort<{dtype}, false>(sorted, scores, index, tmp, repeat);
PipeBarrier<PIPE_V>();
Extract(value, out, sorted, repeat);
ORDER(V_MTE3); DataCopy(gmV, value, {N}); DataCopy(gmI, out, {N});
"""
    return kernel("A P V I", "AIV_ONLY", body)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", KINDS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(repeat=st.integers(0, N // 32), full=st.booleans(), seed=st.integers(0, 99))
def test_lists_are_sorted_downwards_and_equal_scores_keep_their_order(dtype: str, repeat: int, full: bool, seed: int) -> None:
    kind = KINDS[dtype]
    a = np.random.default_rng(seed).integers(-300, 300, N).astype(kind)
    before = (np.full(N, -7, kind), np.full(N, 77, np.uint32))
    run = run_vector(source(dtype), a, np.array([repeat, full] + [0] * 6, np.int32), *before, outputs=2, inout=True)
    assert run.ok, run
    count = 32 * repeat
    rows = a[:count].reshape(1 if full else repeat, -1) if count else a[:0].reshape(0, 32)
    order = np.argsort(-rows.astype(np.float32), axis=1, kind="stable")
    values, indices = before[0].copy(), before[1].copy()
    values[:count] = np.take_along_axis(rows, order, 1).ravel()
    indices[:count] = (order + np.arange(len(rows))[:, None] * (rows.shape[1] if len(rows) else 0)).ravel()
    np.testing.assert_array_equal(run.outputs[0], values)
    np.testing.assert_array_equal(run.outputs[1], indices)
