"""Values that are built again are what they were."""

from __future__ import annotations

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.transforms.rewriter import Rewriter

CAST_ELEMENTS = """kernel cast_elements[M=32](A: f16[M, 64], B: f16[64, M]) -> Y: f16[M, M] {
  grid bx = 1
  shared a: f16[M, 64], b: f16[64, M]
  fragment c: f32[M, M]
  a = A[0, 0]
  b = B[0, 0]
  c = a @ b
  parallel (i, j) in (M, M) { Y[i, j] = c[i, j] * 2 }
}"""


def test_scalar_expressions_keep_their_types() -> None:
    values, again = to_values(load_text(CAST_ELEMENTS).instantiate()), Rewriter({})
    again.term(values.outputs[0])
    assert {old.op: new.dtype for old, new in again.terms.items()} == {old.op: old.dtype for old in again.terms}
    assert any(old.op == "s_cast" for old in again.terms)
