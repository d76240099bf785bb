"""Whole rows of a tile in UB are read where they lie: by vector instructions, reductions and stores, in every choice."""

from __future__ import annotations

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import graph_of, kernel
from tests.rules.test_implements import Using
from tile_eg.egraph import Node
from tile_eg.errors import TileError
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model
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
OF_A_VECTOR = """
kernel vectors[N=144](X: f32[N]) -> (Y: f32[64], H: f16[32], R: f32[1], S: f32[N], T: f32[64, 8]) {
  grid bx = 1
  shared x: f32[N], z: f32[N], y: f32[64], h: f16[32], s: f32[N], t: f32[64, 8]
  x = X[0]
  z = cumsum(x)
  y = z[8:72]
  Y[0] = select(y > 1, y, z[72:136])
  h = z[16:48]
  H[0] = h
  R[0:1] = rowsum(z[8:136])
  s = z
  s[8:72] = z[0:64] + z[8:72]
  S[0] = s
  t = y[:, None] * 2
  T[0, 0] = t
}
"""
ALIKE = """
kernel alike[M=24, N=64](X: f32[M, N]) -> (A: f32[N], B: f32[N]) {
  grid bx = 1
  shared x: f32[M, N], z: f32[M, N]
  x = X[0, 0]
  z = cumsum(x, 0)
  A[0] = colsum(z[4:16, :])
  B[0] = colsum(z[4:8, :])
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


@pytest.mark.slow
def test_parts_of_a_vector_begin_at_blocks() -> None:
    assert {n.payload[1] for n in graph_of(OF_A_VECTOR).nodes if n.op == "Part"} >= {8, 16, 72}


@pytest.mark.slow
def test_parts_that_begin_at_one_row_are_as_large_as_each_of_them() -> None:
    check_numbers(kernel(ALIKE), Using("ub-part"))


@pytest.mark.slow
def test_all_that_reads_a_vector_reads_parts_of_it_where_they_lie() -> None:
    check_numbers(kernel(OF_A_VECTOR), Using("ub-part-of-row"))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("text", [READERS, OF_A_VECTOR], ids=["rows", "vector"])
@pytest.mark.parametrize("extractor", [Worst(), *(Random(s) for s in range(6))], ids=["worst", *(f"random{n}" for n in range(6))])
def test_every_choice_beside_it_computes_the_same(extractor, text: str) -> None:
    check_numbers(kernel(text), extractor)


def test_no_result_takes_the_place_of_a_tile_of_which_a_row_is_read_beside_it() -> None:
    less_a_row, put = (Node(0, op, 0, (), (), 0, ()) for op in ("VBinC", "VPut"))
    assert overwritten(less_a_row, (1, 1)) == overwritten(put, (1, 1)) == ()
    assert overwritten(less_a_row, (1, 2)) == overwritten(put, (1, 2)) == (1,)


LESS_A_ROW = """
kernel less[M=16, N=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], r: f32[N]
  x = X[0, 0] * 2
  for i in serial(M - 1) {
    r = x[i + 1, :]
    x = x - r[None, :]
  }
  Y[0, 0] = x
}
"""
TURNED = """
kernel turned[M=32](X: f32[M, M]) -> Y: f32[M, M] {
  grid bx = 1
  shared x: f32[M, M]
  x = X[0, 0] * 2
  for i in serial(5) {
    x = x.T
  }
  Y[0, 0] = x
}
"""
ITSELF = """
kernel itself[M=8, N=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = 1
  fragment x: f32[M, N] = 0
  for i in pipelined(4) {
    x = reshape(reshape(x, 4, 128), M, N)
  }
  Y[0, 0] = x
}
"""
RESHAPED = """
kernel reshaped[M=16, N=64](X: f32[M, N]) -> (Y: f32[4, 32], Z: f32[M, N]) {
  grid bx = 1
  shared x: f32[M, N], y: f32[4, 32], r: f32[2, N]
  x = X[0, 0] * 2
  y = 0
  for i in serial(7) {
    r = x[i*2 + 1 : i*2 + 3, :]
    y = y + reshape(r, 4, 32)
  }
  Y[0, 0] = y
  Z[0, 0] = x
}
"""


@pytest.mark.parametrize("text", [LESS_A_ROW, TURNED], ids=["less a row", "turned"])
def test_no_state_is_made_where_its_instruction_still_reads(text: str) -> None:
    check_numbers(kernel(text), Exact())


def test_a_state_that_each_trip_leaves_as_it_is_needs_no_loop() -> None:
    check_numbers(kernel(ITSELF), Exact())


def test_rows_of_trips_are_not_read_in_rows_of_another_length_where_they_lie() -> None:
    check_numbers(kernel(RESHAPED), UsingBoth())


class UsingBoth(Exact):
    """As many tiles as can be are read where others lie."""

    as_found = True

    def aim(self, model: Model) -> None:
        chosen = zip(model.graph.nodes, model.chosen, strict=True)
        model.cp.maximize(sum(x * (99 if n.op in ("PanelOf", "Reshaped") else -1) for n, x in chosen))


IN_WINDOWS = ("v-binary-in-place", "v-binary-below-rows", "v-binary-above-rows")


@pytest.mark.slow
def test_tiles_that_would_fit_but_for_their_places_are_told_so() -> None:
    text = """kernel k[M=5, N=4096](X: bf16[M, N]) -> Y: bf16[M, N] {
  grid b = 1
  shared x: bf16[5, 4096]
  x = X[0, 0]
  Y[0, 0] = cumprod(x, 1, 1)
}"""
    with pytest.raises(TileError, match="no place was found for each of them"):
        lower(load_text(text).instantiate(), "910B2", search=search_options(effort="none", without=IN_WINDOWS))
