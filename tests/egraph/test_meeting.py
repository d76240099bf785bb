"""Which tensors the two vector cores would meet in, and what the rules make of it."""

from __future__ import annotations

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import CHIP, graph_of, kernel
from tile_eg.egraph.meeting import meetings
from tile_eg.extract import extract
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.exact import Exact
from tile_eg.frontend.ssa import to_values


def text(body: str) -> str:
    return f"""
kernel t[M=64, N=64](A: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {{
  grid bx = 1
  shared a: f32[M, N], half: f32[32, N], quarter: f32[32, 32]
  a = A[0, 0]
{body}
  D[0, 0] = a
}}
"""


READ_BACK = text("  C[0, 0] = exp(a)\n  a = C[0, 0] + a")
READ_BACK_SHIFTED = text("  C[0, 0] = exp(a)\n  half = C[16, 0]\n  D[0, 0] = a\n  D[0, 0] = half")
STORED_OVER = text("  half = A[0, 0]\n  C[0, 0] = exp(a)\n  C[16, 0] = half")
COLUMN_TILES = text("""  for i in serial(2) {
    quarter = A[0, i*32]
    C[0, i*32] = exp(quarter)
  }
  for i in serial(2) {
    quarter = C[0, i*32]
    C[0, i*32] = quarter + quarter
  }""")
ROW_TILES = text("""  for i in serial(2) {
    half = A[i*32, 0]
    C[i*32, 0] = exp(half)
  }""")
WHOLE_NEEDED = """
kernel t[M=64, N=64](A: f32[M, N]) -> (C: f32[M, N], D: f32[N]) {
  grid bx = 1
  shared a: f32[M, N]
  a = A[0, 0]
  for i in serial(2) {
    C[0, 0] = exp(a)
    a = C[0, 0]
    D[0] = colsum(a)
  }
}
"""
CASES = {
    "read_back": (READ_BACK, {"C": True}), "read_back_shifted": (READ_BACK_SHIFTED, {"C": False, "D": False}),
    "stored_over": (STORED_OVER, {"C": False}), "column_tiles": (COLUMN_TILES, {"C": True}), "row_tiles": (ROW_TILES, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_overlaps_are_seen_and_told_apart_from_windows_that_are_alike(name):
    source, expected = CASES[name]
    found = meetings(to_values(kernel(source)))
    assert {t: alike for t, alike in found.items() if t in expected} == expected


def shares(source: str) -> set[int | None]:
    return {s.share for s in extract(graph_of(source), CHIP).best.storages.values()}


@pytest.mark.slow
def test_what_is_read_back_alike_stays_split_over_both_vector_cores():
    assert shares(COLUMN_TILES) == {0}


@pytest.mark.slow
@pytest.mark.parametrize("source", [READ_BACK_SHIFTED, STORED_OVER, WHOLE_NEEDED])
def test_one_vector_core_works_alone_where_two_would_meet(source):
    assert shares(source) == {None}


@pytest.mark.few(7)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Exact(), Worst(), Random(0), Random(1)], ids=["exact", "worst", "random0", "random1"])
@pytest.mark.parametrize("source", [READ_BACK, READ_BACK_SHIFTED, STORED_OVER, COLUMN_TILES, WHOLE_NEEDED])
def test_no_core_reads_or_stores_what_the_other_one_stores(source, extractor):
    check_numbers(kernel(source), extractor)


CUBE_READS_WHAT_VECTOR_STORED = """
kernel t[M=64, N=64, K=64](A: f16[M, K], B: f16[K, N]) -> (C: f16[M, K], D: f32[32, N]) {
  grid bx = 1
  shared a: f16[M, K], b: f16[K, N], x: f16[32, K]
  fragment c: f32[32, N]
  a = A[0, 0]
  b = B[0, 0]
  C[0, 0] = exp(a)
  x = C[16, 0]
  c = x @ b
  D[0, 0] = c
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Exact(), Random(0)], ids=["exact", "random"])
def test_a_tensor_that_is_stored_to_belongs_to_one_kind_of_core(extractor):
    check_numbers(kernel(CUBE_READS_WHAT_VECTOR_STORED), extractor)
