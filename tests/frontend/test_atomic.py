"""Atomic additions in the source: what they mean, and where they are refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.test_bad_input import error_of
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference_values import run_values
from tile_eg.search.compiler import check_kernel, meaning

SUMS = """
kernel sums[M=40, N=24, BM=16](X: f32[M, N]) -> S: f32[N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N]
  x = X[bx*BM, 0]
  atomic S[0] += colsum(x)
}
"""
IN_A_LOOP = """
kernel looped[M=64, N=24](X: f32[M, N]) -> S: f32[16, N] {
  grid bx = 2
  shared x: f32[16, N]
  for i in serial(2) {
    x = X[bx*32 + i*16, 0]
    atomic S[0, 0] += x
  }
}
"""


def kernel(text: str) -> Kernel:
    return load_text(text).instantiate()


def numbers(k: Kernel) -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)
    return {t.name: random.integers(-8, 9, t.shape).astype(t.dtype.numpy) for t in k.tensors if not t.output}


def test_blocks_add_to_the_same_elements():
    x = numbers(kernel(SUMS))["X"]
    assert np.array_equal(meaning(kernel(SUMS), {"X": x})["S"], x.sum(axis=0))


def test_what_the_output_held_counts():
    x, begun = numbers(kernel(SUMS))["X"], np.full(24, 100, np.float32)
    assert np.array_equal(meaning(kernel(SUMS), {"X": x, "S": begun})["S"], 100 + x.sum(axis=0))


@pytest.mark.parametrize("text", [SUMS, IN_A_LOOP])
def test_values_have_the_meaning_of_the_source(text):
    k = kernel(text)
    given = numbers(k)
    assert np.array_equal(run_values(to_values(k), given)["S"], meaning(k, given)["S"])


def test_blocks_that_add_may_meet():
    check_kernel(kernel(SUMS))
    assert "two blocks write the same elements" in str(error_of(SUMS.replace("atomic S[0] +=", "S[0] =")))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("atomic S[0] += colsum(x) S[0] = colsum(x)", "is added to atomically, and stored to or read"),
        ("S[0] = colsum(x) atomic S[0] += colsum(x)", "is added to atomically, and stored to or read"),
        ("atomic S[0] += colsum(x) x[0, :] = S[0:N]", "is added to atomically, and stored to or read"),
        ("atomic x += x", "atomic additions are of whole tiles, to a tensor"),
        ("parallel i in N { atomic x[0, i] += x[0, i] }", "atomic additions are of whole tiles, to a tensor"),
        ("atomic S[0] -= colsum(x)", "only sums are atomic"),
        ("atomic X[0, 0] += x", "is an input and cannot be written"),
        ("atomic S[0] = colsum(x)", "an atomic addition names a window of a tensor and what is added"),
    ],
)
def test_what_cannot_be_added_atomically_is_refused(statement, message):
    assert message in str(error_of(SUMS.replace("atomic S[0] += colsum(x)", statement)))
