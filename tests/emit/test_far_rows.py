"""Rows that lie further apart in GM than the field of a stride holds are copied in another way."""

from __future__ import annotations

from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

FAR = """
kernel far[M=4, N=2200000000, W=128](A: f16[M, N]) -> C: f16[M, W] {
  grid (bx) = (1)
  shared a: f16[4, W]
  a = A[0, N - W]
  C[0, 0] = a * 2
}
"""
PRODUCT = """
kernel far[M=4, N=4400000000, K=64](A: f16[M, K], B: f16[K, 128]) -> C: f16[M, N] {
  grid (bx) = (1)
  shared a: f16[4, K], b: f16[K, 128]
  fragment c: f32[4, 128] = 0
  a = A[0, 0]
  b = B[0, 0]
  c += a @ b
  C[0, N - 128] = c
}
"""


def test_rows_are_copied_one_by_one_where_the_gap_does_not_fit_its_field() -> None:
    """4.4 GB from row to row, and the field of a DataCopyPad holds 2^32 - 1 bytes."""
    text = lower(load_text(FAR).instantiate({})).source
    assert "A_gm[static_cast<int64_t>(row) * 2200000000 + 2199999872]" in text
    assert "DataCopyExtParams(1, 256, 0, 0, 0)" in text


def test_a_result_whose_rows_no_fixpipe_reaches_goes_by_way_of_the_vector_cores() -> None:
    text = lower(load_text(PRODUCT).instantiate({})).source
    assert "(c_ws, c_l0c," in text and "C_gm[static_cast<int64_t>(row) * 4400000000" in text
