"""A choice that is the same for all elements ends where both of its values do, whichever it takes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.search.compiler import lower, meaning

SUM = """
kernel sums[M=34, N=25](X: f32[M, N]) -> Y: f32[M] {
  grid bx = 2
  shared x: f32[17, 64]
  fragment t: f32[17, 64], u: f32[17, 64], s: f32[17] = 0
  for k in serial(1) {
    x = X[bx*17, k*64]
    t = abs(x)
    parallel (i, j) in (17, 64) { u[i, j] = select(%s) }
    s = s + rowsum(u)
  }
  Y[bx*17] = s
}
"""
CHOICES = ["k > 0, t[i, j], j", "k > 0, t[i, j], 2.0", "k < 1, j, t[i, j]", "k < 1, t[i, j], j", "k < 1, t[i, j] + j, x[i, j]"]
X = np.random.default_rng(2).integers(-4, 5, (34, 25)).astype(np.float32)


@pytest.mark.parametrize("choice", CHOICES)
def test_it_ends_where_both_of_its_values_do(choice: str) -> None:
    k = kernel(SUM % choice)
    assert np.array_equal(run_values(to_values(k), {"X": X})["Y"], meaning(k, {"X": X})["Y"])


@pytest.mark.slow
def test_the_emitted_kernel_leaves_out_what_lies_behind_the_end() -> None:
    assert np.array_equal(lower(kernel(SUM % CHOICES[0])).run({"X": X})["Y"], np.full(34, sum(range(25)), np.float32))
