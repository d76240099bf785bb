"""Rows behind a product: taken where it is faster, right at tails, and a move like others."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tests.transforms.test_packed_operand import GEMM
from tile_eg.explore.runners import explained
from tile_eg.explore.why_not import why_not
from tile_eg.ir.program import SyncAll
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning, plan_schedule
from tile_eg.search.driver import phase_of
from tile_eg.search.rows_behind import made_in_phases, of_phases, ways
from tile_eg.timeline.engine import run
from tile_eg.transforms.rows_behind import product_of

NORM = """
kernel norm[M=50, N=90, K=100, BM=16, BK=64](A: f16[M, K], W: f16[K, N], R: f16[M, N]) -> (H: f16[M, N], Y: f16[M, N]) {
  grid bx = ceildiv(M, BM)
  shared a: f16[BM, BK], w: f16[BK, N], r: f16[BM, N]
  fragment c: f32[BM, N], s: f32[BM]
  c = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    w = W[k*BK, 0]
    c += a @ w
  }
  r = R[bx*BM, 0]
  c = c + f32(r)
  H[bx*BM, 0] = c
  s = rsqrt(rowsum(c * c) / N + 1e-5)
  Y[bx*BM, 0] = c * s[:, None]
}
"""
FIRST = NORM.replace("c = 0", "r = R[bx*BM, 0]\n  c = r").replace("  r = R[bx*BM, 0]\n  c = c + f32(r)\n", "")
SOFTMAX = """
kernel scores[M=50, N=90, K=140, BM=16, BK=64](A: f16[M, K], W: f16[N, K]) -> P: f16[M, N] {
  grid bx = ceildiv(M, BM)
  shared a: f16[BM, BK], w: f16[N, BK]
  fragment c: f32[BM, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    w = W[0, k*BK]
    c += a @ w.T
  }
  c = exp(c * 0.01 - rowmax(c * 0.01)[:, None])
  P[bx*BM, 0] = c / rowsum(c)[:, None]
}
"""
EXACT = NORM.replace("s = rsqrt(rowsum(c * c) / N + 1e-5)", "s = rowmax(c)").replace("c * s[:, None]", "c - s[:, None]")
LARGE = {"M": 1024, "N": 512, "K": 1024, "BM": 64}


@lru_cache
def large(text: str = NORM, **options) -> Lowered:
    return lower(kernel(text, **LARGE), search=search_options(**options))


def is_behind(low: Lowered) -> bool:
    return low.candidates[0].schedule.behind is not None


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("text", [NORM, FIRST], ids=["from zero", "from a residual"])
def test_rows_that_fill_few_cores_go_behind_the_tiles(text):
    assert is_behind(large(text))
    assert large(text).cost.microseconds < large(text, without=("rows-behind",)).cost.microseconds


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"without": ("rows-behind",)}, {"effort": "none"}])
def test_it_can_be_switched_off(options):
    assert not is_behind(large(**options))


@pytest.mark.slow
def test_what_a_sum_begins_with_rounds_and_the_rest_does_not():
    first = EXACT.replace("c = 0", "r = R[bx*BM, 0]\n  c = r").replace("  r = R[bx*BM, 0]\n  c = c + f32(r)\n", "")
    assert is_behind(large(EXACT, exact_math=True)) and not is_behind(large(first, exact_math=True))


@pytest.mark.slow
def test_all_cores_meet_before_whole_rows_are_read():
    nodes = large().program.vector
    at = max(i for i, n in enumerate(nodes) if isinstance(n, SyncAll))
    assert "sums" in str(nodes[at:]) and "sums" not in str(nodes[:at])


@pytest.mark.slow
def test_explain_shows_both_phases():
    text = str(explained(large()))
    assert "all cores meet" in text and "tiles of 128 x 256" in text


@pytest.mark.slow
def test_it_can_be_asked_for():
    assert "not made: beyond the budget" in str(why_not(large(), "rows-behind"))
    assert "it was left out" in str(why_not(large(without=("rows-behind",)), "rows-behind"))


@pytest.mark.slow
def test_what_is_decided_of_the_product_is_asked_under_it():
    assert " (" in str(why_not(large(), "buffers=2"))


@pytest.mark.slow
def test_cores_fall_out_of_step_whoever_reads_their_tiles():
    plain = search_options(without=["packed-operand", "rest-in-parts"])
    low = lower(kernel(GEMM, M=4096, N=512, K=512, BM=128, BN=256), search=plain)
    p = next(c.planned.program for c in low.candidates if c.schedule.persistent)
    *given, made = p.tensors
    shared = replace(p, tensors=tuple(given), shared=(made,))
    assert run(shared, low.chip).block_cycles == run(p, low.chip).block_cycles


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize(
    ("text", "sizes", "tile"),
    [
        (NORM, {}, (16, 64)),
        (NORM, {"M": 300, "N": 200, "K": 260}, (64, 64)),
        (SOFTMAX, {}, (32, 32)),
        (SOFTMAX, {"M": 16, "N": 200, "K": 1500}, (16, 16)),
    ],
)
def test_the_result_is_right_at_tails(text, sizes, tile, chip):
    k = kernel(text, **sizes)
    form = lower(k, chip, search=search_options(effort="none")).form
    found = next(p for p in ways(product_of(form.values), form.setting.chip) if p.size == tile)
    rows = partial(phase_of, found.second, form, of_phases(form.setting))
    made = made_in_phases(form, found, phase_of, rows).candidates[0]
    arrays = arrays_for(k)
    got, want = plan_schedule(made.schedule, form.setting.chip).run(arrays), meaning(k, arrays)
    for name in want:
        assert np.allclose(got[name].astype(float), want[name].astype(float), rtol=4e-3, atol=4e-3)


@pytest.mark.slow
def test_rows_that_no_block_has_room_for_aremade_in_phases_so():
    assert is_behind(lower(kernel(NORM, M=64, N=4096, K=256)))
