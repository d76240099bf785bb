"""A kernel's values as egglog text: each term once, every index readable again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extract.kernels import GATED, TRICKY, kernel
from tile_eg.egraph.encode import Encoder, number
from tile_eg.frontend.ssa import to_values
from tile_eg.rules import native

TAILS = """
kernel tails[M=100, N=70, BM=64, BN=64](A: f32[M, N]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f32[BM, BN]
  a = A[bx*BM, by*BN]
  C[bx*BM, by*BN] = exp(a)
}
"""


def encoded(text: str) -> tuple[Encoder, list[str]]:
    encoder = Encoder(to_values(kernel(text)))
    return encoder, encoder.encode()


@pytest.mark.parametrize("name", sorted(TRICKY))
def test_every_term_is_written_once(name):
    _, lines = encoded(TRICKY[name])
    bodies = [line.split(" ", 2)[2] for line in lines if line.startswith("(let $") and "$root" not in line]
    assert len(bodies) == len(set(bodies))


def test_a_name_is_defined_before_it_is_used():
    _, lines = encoded(GATED)
    known: set[str] = set()
    for line in lines:
        words = line.replace("(", " ").replace(")", " ").split()
        names = [w for w in words if w.startswith("$")]
        made = names.pop(0) if words[0] == "let" else None
        assert set(names) <= known
        known |= {made} if made else set()


def test_valid_extents_and_offsets_can_be_read_back():
    encoder, lines = encoded(TAILS)
    assert encoder.index and all(str(e) == text for text, e in encoder.index.items())
    assert set(encoder.index) == {line.split('"')[1] for line in lines if "(ideps" in line}


@pytest.mark.slow
@given(st.floats(width=32))
def test_numbers_survive(x):
    egraph = native.load().EGraph()
    egraph.run_program(*egraph.parse_program(f"(function x () f64 :no-merge) (set (x) {number(x)})"))
    (row,) = egraph.freeze().functions["x"].rows
    back = egraph.value_to_f64(row.output)
    assert back == x or (math.isnan(back) and math.isnan(x))
