"""No two blocks write the same elements, as far as windows tell."""

from __future__ import annotations

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.text import load_text

KERNEL = """
kernel copy[M=64, N=64, BM=16, BN=16](X: f32[M, N]) -> Y: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared x: f32[BM, BN]
  x = X[bx*BM, by*BN]
  Y[ROW, COL] = x
}
"""


def check_store(row: str, col: str, **sizes: int) -> None:
    check(load_text(KERNEL.replace("ROW", row).replace("COL", col), "t.tile").instantiate(sizes))


@pytest.mark.parametrize(("row", "col"), [("bx*BM", "by*BN"), ("by*BM", "bx*BN"), ("(3 - bx)*BM", "by*BN")])
def test_windows_of_their_own_are_fine(row, col):
    check_store(row, col)


@pytest.mark.parametrize(("row", "col"), [("bx", "by*BN"), ("bx*BM", "0"), ("bx*8", "by*BN"), ("bx*15", "by*BN"), ("0", "0")])
def test_windows_that_overlap_are_refused_with_both_blocks(row, col):
    with pytest.raises(TileError, match="two blocks write the same elements of `Y`: those with bx=") as caught:
        check_store(row, col)
    assert caught.value.span.line == 6


def test_a_tail_that_is_cut_at_the_edge_meets_nobody():
    check_store("bx*BM", "by*BN", M=50, N=37)


def test_one_block_may_write_a_place_again():
    again = KERNEL.replace("Y[ROW, COL] = x", "Y[0, 0] = x\n  Y[0, 0] = x").replace("M=64, N=64", "M=16, N=16")
    check(load_text(again, "t.tile").instantiate({}))


def check_stores(*stores: str) -> None:
    last = "\n  ".join(f"Y[{s}] = x" if "=" not in s else s for s in stores)
    check(load_text(KERNEL.replace("Y[ROW, COL] = x", last), "t.tile").instantiate({}))


@pytest.mark.parametrize("other", ["Y[0:64, :] = 0", "by*BM, bx*BN", "Y[bx*BM + 15:bx*BM + 17, by*BN:by*BN + 1] = 0"])
def test_two_statements_whose_windows_meet_in_two_blocks_are_refused(other):
    with pytest.raises(TileError, match="two blocks write the same elements of `Y`") as caught:
        check_stores("bx*BM, by*BN", other)
    assert [span.line for span in (caught.value.span, caught.value.notes[0][1])] == [7, 6]


@pytest.mark.parametrize("other", ["Y[bx*BM:bx*BM + 1, by*BN:by*BN + 16] = 0", "bx*BM, by*BN"])
def test_a_block_may_store_again_where_it_has_stored(other):
    check_stores("bx*BM, by*BN", other)


LAST_IS_WHOLE = """
kernel whole[M=100, N=40](X: f32[M, N], S: f32[M], G: f32[N], W: f32[N, N]) -> Y: f32[M, N] {
  grid b = ceildiv(M, 32)
  let s = min(b*32, M - 32)
  shared x: f32[32, N], y: f32[32, N], v: f32[32], g: f32[N], w: f32[N, N]
  x = X[s, 0]
  v = S[s]
  g = G[0]
  w = W[0, 0]
  y = 0
  LINE
  Y[s, 0] = y
}
"""


def check_whole(line: str) -> None:
    check(load_text(LAST_IS_WHOLE.replace("LINE", line), "t.tile").instantiate())


@pytest.mark.parametrize(
    "line",
    [
        "y = exp(x) * v[:, None] + g[None, :]",
        "y = x - rowmax(x)[:, None]",
        "y += x @ w",
        "for k in serial(3) { y = y * 2 + x }",
        "parallel (i, j) in (32, N) { y[i, j] = select(s + i < 50, x[i, j], v[i]) }",
        "parallel (i, j) in (32, N) { Y[s + i, j] = x[i, j] + X[s + i, j] }\n  y = x + x",
    ],
)
def test_blocks_may_store_one_row_if_its_value_goes_by_the_row_alone(line):
    check_whole(line)


@pytest.mark.parametrize(
    "line",
    [
        "y = x * b",
        "y = x + colsum(x)[None, :]",
        "y = X[0, 0]",
        "y = cumsum(x, 0)",
        "for i in serial(1, 32) { x[i, :] = x[i, :] + x[i - 1, :] }\n  y = x",
        "parallel (i, j) in (32, N) { y[i, j] = x[31 - i, j] }",
        "parallel (i, j) in (32, N) { y[i, j] = x[i, j] + i }",
        "parallel (i, j) in (31, N) { y[i, j] = x[i + 1, j] }",
    ],
)
def test_blocks_may_not_store_one_row_if_its_value_goes_by_its_place_in_the_block(line):
    with pytest.raises(TileError, match="two blocks write the same elements of `Y`: those with b=2 and b=3"):
        check_whole(line)


def test_element_loops_of_two_blocks_may_not_write_the_same_elements():
    line = "parallel (i, j) in (32, N) { Y[min(b*20, M - 32) + i, j] = x[i, j] }"
    with pytest.raises(TileError, match="two blocks write the same elements of `Y`: those with b=0 and b=1, a window of 32x40"):
        check(load_text(LAST_IS_WHOLE.replace("LINE", "").replace("Y[s, 0] = y", line), "t.tile").instantiate())


IN_TRIPS = """
kernel whole[M=40, N=40](X: f32[M, N], I: i32[8]) -> Y: f32[M, N] {
  grid b = 2
  let s = min(b*32, M - 32)
  shared x: f32[8, N], y: f32[8, N], g: f32[N], n: i32[8]
  n = I[b]
  y = 0
  g = 0
  for k in serial(4) {
    x = X[s + 8*k, 0]
    LINE
    Y[s + 8*k, 0] = y
  }
}
"""


def check_trips(line: str) -> None:
    check(load_text(IN_TRIPS.replace("LINE", line), "t.tile").instantiate())


@pytest.mark.parametrize("line", ["y = x + g[None, :]", "y = 0\n for m in serial(3) { y += x }", "y = X[s + 8*k + I[0], 0]"])
def test_blocks_may_store_one_row_in_different_trips_if_each_trip_begins_anew(line):
    check_trips(line)


@pytest.mark.parametrize("line", ["y += x", "g += 1\n y = x + g[None, :]", "y = X[s + 8*k + n[0], 0]"])
def test_blocks_may_not_store_one_row_if_its_value_goes_by_earlier_trips_or_by_an_index_of_the_block(line):
    with pytest.raises(TileError, match="two blocks write the same elements of `Y`: those with b=0 and b=1"):
        check_trips(line)


def test_blocks_may_not_store_one_row_if_its_value_counts_elements():
    line = "parallel (i, j) in (32, N) { g[0] = g[0] + 1\n Y[s + i, j] = g[0] }"
    with pytest.raises(TileError, match="two blocks write the same elements of `Y`"):
        check_whole(line)
