"""Sums of products from zero on: the same numbers, wherever they begin."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tests.transforms.test_rows_behind import NORM
from tests.transforms.test_split_k import PRODUCT, whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import reachable
from tile_eg.search.compiler import meaning
from tile_eg.transforms.sums_from_zero import from_zero

BEGUN = NORM.replace("fragment c: f32[BM, N] = 0,", "fragment c: f32[BM, N],").replace(
    "  for k", "  r = R[bx*BM, 0]\n  c = r\n  for k"
)
ONES = NORM.replace("fragment c: f32[BM, N] = 0", "fragment c: f32[BM, N] = 1")


@pytest.mark.parametrize("text", [BEGUN, ONES], ids=["a tile", "ones"])
def test_the_meaning_stays(text):
    k = kernel(text)
    arrays, made = whole_numbers(k), from_zero(to_values(k))
    got, want = run_values(made, arrays), meaning(k, arrays)
    assert all(np.array_equal(got[name], want[name]) for name in want)


def test_the_loop_begins_at_zero():
    (loop,) = (t for t in reachable(from_zero(to_values(kernel(BEGUN)))) if t.op == "loop")
    assert loop.args[2][0][0].op == "fill" and loop.args[2][0][0].args[0] == 0


@pytest.mark.parametrize("text", [NORM, PRODUCT])
def test_sums_from_zero_stay_as_they_are(text):
    assert from_zero(to_values(kernel(text))) is None
