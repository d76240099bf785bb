"""Whole rows of a tile in UB are read where they lie: by vector instructions, reductions and stores, in every choice."""

from __future__ import annotations

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import graph_of, kernel
from tests.rules.test_implements import Using
from tile_eg.egraph import Node
from tile_eg.errors import TileError
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.schedule import overwritten
from tile_eg.frontend.text import load_text
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

READERS = """
kernel readers[M=24, N=40](X: f32[M, N]) -> (Y: f32[12, N], R: f32[N], C: f32[12], W: f32[M, N], S: f32[M, N]) {
  grid bx = 1
  shared x: f32[M, N], z: f32[M, N], y: f32[12, N], r: f32[N], w: f32[M, N], s: f32[M, N]
  x = X[0, 0]
  z = cumsum(x, 0)
  y = z[4:16, :]
  Y[0, 0] = y
  R[0] = colsum(y)
  C[0] = rowsum(y)
  r = z[0, :]
  w = z - r[None, :]
  W[0, 0] = w
  s = w
  s[0:12, :] = w[1:13, :]
  S[0, 0] = s
}
"""
SUMS = """
kernel sums[M=8, N={columns}](X: f32[M, N]) -> Y: f32[M, N] {{
  grid bx = 1
  shared x: f32[M, N]
  x = X[0, 0]
  Y[0, 0] = cumsum(x, 0)
}}
"""


def parts_in(text: str) -> set[int]:
    """The rows at which parts begin that are offered."""
    return {n.payload[0] for n in graph_of(text).nodes if n.op == "Part"}


@pytest.mark.parametrize("columns", [16, 12])
def test_parts_begin_at_any_row(columns: int) -> None:
    assert parts_in(SUMS.format(columns=columns)) == {0, 1, 2, 4}


@pytest.mark.slow
def test_all_that_reads_rows_reads_them_where_they_lie() -> None:
    check_numbers(kernel(READERS), Using("ub-part"))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Worst(), *(Random(s) for s in range(6))], ids=["worst", *(f"random{n}" for n in range(6))])
def test_every_choice_beside_it_computes_the_same(extractor) -> None:
    check_numbers(kernel(READERS), extractor)


def test_no_result_takes_the_place_of_a_tile_of_which_a_row_is_read_beside_it() -> None:
    less_a_row, put = (Node(0, op, 0, (), (), 0, ()) for op in ("VBinC", "VPut"))
    assert overwritten(less_a_row, (1, 1)) == overwritten(put, (1, 1)) == ()
    assert overwritten(less_a_row, (1, 2)) == overwritten(put, (1, 2)) == (1,)


def test_tiles_that_would_fit_but_for_their_places_are_told_so() -> None:
    text = """kernel k[M=5, N=4096](X: bf16[M, N]) -> Y: bf16[M, N] {
  grid b = 1
  shared x: bf16[5, 4096]
  x = X[0, 0]
  Y[0, 0] = cumprod(x, 1, 1)
}"""
    with pytest.raises(TileError, match="no place was found for each of them"):
        lower(load_text(text).instantiate(), "910B2", search=search_options(effort="none"))
