"""A tile for each vector core: the same numbers in every choice, and half as much for both where each did all of it."""

from __future__ import annotations

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import kernel
from tile_eg.chips import load_chip
from tile_eg.cost_models import rank_model
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.exact import Exact
from tile_eg.frontend.ssa import to_values
from tile_eg.ops.types import Level
from tile_eg.search import search_options
from tile_eg.search.compiler import lower
from tile_eg.search.driver import moves_from
from tile_eg.search.form import Setting, searched
from tile_eg.search.tile_each import NAME
from tile_eg.transforms.tile_each import tile_each

SCORES = """
kernel scores[H=1, L=64, D=32, C=32](K: f16[H, L, D], V: f16[H, L, D], G: f32[H, L]) -> (Y: f16[H, L, D], S: f32[H, L]) {
  grid (c, h) = (ceildiv(L, C), H)
  shared   k: f16[C, D], v: f16[C, D], p: f16[C, C]
  fragment a: f32[C, C], g: f32[C]
  k = K[h, c*C, 0]
  v = V[h, c*C, 0]
  g = pad(G[h, c*C], 0)
  g = cumsum(g)
  S[h, c*C] = g
  a = k @ k.T
  parallel (i, j) in (C, C) { a[i, j] = select(i >= j, a[i, j] * g[i] - g[j], 0) }
  p = a
  Y[h, c*C, 0] = p @ v
}
"""
BEST = """
kernel best[M=96, N=512, D=64, T=64](Q: f16[M, 16, D], K: f16[N, D]) -> I: f32[M, 2 * T] {
  grid m = M
  shared   q: f16[16, D], k: f16[N, D]
  fragment a: f32[16, N], s: f32[N], p: f32[2 * T]
  q = Q[m, 0, 0]
  k = K[0, 0]
  a = q @ k.T
  s = colsum(a)
  p = topk(s, T)
  I[m, 0] = p
}
"""
BY_POSITION = """
kernel position[M=64, D=32](A: f16[M, D], B: f16[D, D]) -> (Y: f32[M, D], S: f32[D]) {
  grid m = 4
  shared a: f16[16, D], b: f16[D, D]
  fragment c: f32[16, D]
  a = A[m*16, 0]
  b = B[0, 0]
  c = cumsum(a @ b, 1)
  parallel (i, j) in (16, D) { c[i, j] = select(m*16 + i >= j, c[i, j], 0) }
  Y[m*16, 0] = c
  atomic S[0] += colsum(c)
}
"""

SUMS = """
kernel sums[M=832, N=64, D=64](A: f16[M, D], B: f16[D, N]) -> Y: f32[M, N] {
  grid m = 52
  shared a: f16[16, 16], b: f16[16, N]
  fragment c: f32[16, N]
  c = 0
  for k in pipelined(4) {
    a = A[m*16, k*16]
    b = B[k*16, 0]
    c += a @ b
  }
  Y[m*16, 0] = cumsum(c, 1)
}
"""


@pytest.mark.parametrize(("sizes", "grid"), [({}, (1, 1)), ({"H": 2, "L": 40}, (1, 2)), ({"H": 2, "L": 90}, (3,))])
def test_blocks_have_two_tiles_that_follow_each_other(sizes: dict[str, int], grid: tuple[int, ...]) -> None:
    made = tile_each(to_values(kernel(SCORES, **sizes)))
    assert made is not None and made.grid == grid and made.tile_each and tile_each(made) is None


def test_there_are_two_for_each_block() -> None:
    assert tile_each(to_values(kernel(SCORES, H=3, L=32))) is None


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_the_numbers_are_the_same(chip: str) -> None:
    check_numbers(kernel(SCORES, H=2, L=90), Exact(), chip=load_chip(chip), each=True)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("extractor", [Worst(), *(Random(s) for s in range(6))], ids=["worst", *(f"random{n}" for n in range(6))])
def test_so_they_are_in_every_choice(extractor) -> None:
    check_numbers(kernel(SCORES, H=2, L=40), extractor, each=True)


@pytest.mark.slow
def test_persistent_cores_take_two_tiles_after_the_other() -> None:
    check_numbers(kernel(SCORES, H=3, L=64), Exact(), order=(2, 0, 0), each=True)


@pytest.mark.slow
def test_the_search_gives_each_vector_core_a_tile_where_both_would_sort_the_same() -> None:
    found = lower(kernel(BEST), "910B2")
    assert found.form.moves == ("tile-a-vector-core",)
    assert {s.name: s.tiles for s in found.ranked[0].schedule.storages.values() if s.level is Level.L1} == {"q": 2, "k": 1}
    assert lower(kernel(BEST, M=24), "910B2").form.moves == ()


def test_what_goes_by_the_position_of_a_tile_is_that_of_each() -> None:
    check_numbers(kernel(BY_POSITION), Exact(), each=True)


def test_no_move_that_goes_by_blocks_is_made_behind_it() -> None:
    chip, k = load_chip("910B2"), kernel(SUMS)
    source, setting = to_values(k), Setting(chip, search_options(effort="full"), rank_model("timeline", chip))
    form = searched(k, source, setting, tile_each(source), (NAME,))
    assert form.best is not None and not {"split-k", "rest-in-parts"} & {o.move.name for o in moves_from(form, None)}
    assert "rest-in-parts" in {o.move.name for o in moves_from(searched(k, source, setting), None)}
