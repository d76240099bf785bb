"""A row that two loops go through stays in UB: the later one finds the tiles that the first one loaded, in every choice."""

from __future__ import annotations

import pytest

from tests.extract.checked import CHIP, check_numbers
from tests.extract.kernels import graph_of, kernel
from tests.rules.test_implements import Using
from tile_eg.cost_models import search_model
from tile_eg.egraph import Node
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.grid import with_grid
from tile_eg.extract.pricing import Pricer
from tile_eg.search.compiler import plan_schedule

TWICE = """
kernel twice[M=7, N=256, BM=1, BN=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared   x: f32[BM, BN]
  fragment l: f32[BM] = 0
  for j in pipelined(ceildiv(N, BN)) {
    x = X[bx*BM, j*BN]
    l = l + rowsum(x)
  }
  for k in pipelined(ceildiv(N, BN)) {
    x = X[bx*BM, k*BN]
    Y[bx*BM, k*BN] = x - l[:, None]
  }
}
"""
ROWS = TWICE.replace("BM=1", "BM=4")
SHORT = TWICE.replace("N=256", "N=230")
THRICE = """
kernel thrice[M=5, N=192, BN=64](X: f16[M, N]) -> Y: f16[M, N] {
  grid bx = M
  shared   x: f16[1, BN]
  fragment f: f32[1, BN], m: f32[1] = 0, r: f32[1] = 0
  for i in pipelined(ceildiv(N, BN)) {
    x = X[bx, i*BN]
    f = x
    m = m + rowsum(f)
  }
  for j in pipelined(ceildiv(N, BN)) {
    x = X[bx, j*BN]
    f = x
    f = f - m[:, None]
    r = r + rowsum(f * f)
  }
  for k in pipelined(ceildiv(N, BN)) {
    x = X[bx, k*BN]
    f = x
    Y[bx, k*BN] = (f - m[:, None]) * r[:, None]
  }
}
"""
NORM = """
kernel norm[M=40, N=64, K=256, BM=16, BK=64](X: f16[M, K], W: f16[K, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared   x: f16[BM, BK], h: f16[BM, BK], w: f16[BK, N]
  fragment f: f32[BM, BK], l: f32[BM] = 0, y: f32[BM, N] = 0
  for i in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, i*BK]
    f = x
    l = l + rowsum(f * f)
  }
  for k in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, k*BK]
    w = W[k*BK, 0]
    f = x
    h = f / sqrt(l + 1)[:, None]
    y = y + h @ w
  }
  Y[bx*BM, 0] = y
}
"""
"""The later loop is skewed: it takes more trips than the first one."""
TEXTS = {"twice": TWICE, "rows": ROWS, "short": SHORT, "thrice": THRICE}


def stays_in(text: str) -> int:
    """How many loads are offered as what an earlier loop loaded."""
    return sum(n.op == "Stays" and n.payload[0] != n.payload[1] for n in graph_of(text).nodes)


@pytest.mark.few(2)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", TEXTS)
def test_a_later_loop_finds_what_an_earlier_one_loaded(name: str) -> None:
    check_numbers(kernel(TEXTS[name]), Using("row-stays"))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [256, 230])
def test_a_skewed_loop_finds_the_tiles_of_all_its_trips(columns: int) -> None:
    check_numbers(kernel(NORM, K=columns), Using("row-stays"))


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Worst(), *(Random(s) for s in range(3))], ids=["worst", "random0", "random1", "random2"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_choice_beside_it_computes_the_same(name: str, extractor) -> None:
    check_numbers(kernel(TEXTS[name]), extractor)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_the_next_row_comes_into_a_buffer_that_was_read(name: str) -> None:
    check_numbers(kernel(TEXTS[name]), Using("row-stays"), order=(2, 0, 0))


def test_a_buffer_is_given_back_in_the_trip_that_read_it() -> None:
    graph = graph_of(TWICE)
    found = Using("row-stays").extract(graph, CHIP, Pricer(graph, CHIP, search_model("analytic", CHIP)), 1).best
    schedule = with_grid(found, Node(0, "Persistent", -1, (), (2, 0, 0), 0, ()), CHIP)
    text = str(plan_schedule(schedule, CHIP).program)
    assert text.count("set V -> MTE2 id (k % 4)") == text.count("wait V -> MTE2 id (j % 4)") == 1


@pytest.mark.parametrize(
    "text",
    [
        TWICE.replace("j in pipelined(ceildiv(N, BN))", "j in pipelined(ceildiv(N, BN), stages=2)"),  # two are given
        TWICE.replace("BN=64", "BN=32"),  # more trips than flags
        TWICE.replace("X[bx*BM, k*BN]", "X[bx*BM, N - BN - k*BN]"),  # in another order
        TWICE.replace("x - l[:, None]", "x + 1"),  # nothing says which loop comes first
    ],
    ids=["given", "long", "turned", "apart"],
)
def test_what_is_not_there_again_is_loaded(text: str) -> None:
    assert stays_in(TWICE) and not stays_in(text)
