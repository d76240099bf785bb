"""Split-K: few tiles with long sums go to all cores, where that is faster; the result is right and the same in every run."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from tests.emit.test_phases import PRODUCT
from tests.extract.kernels import kernel
from tile_eg.explore.runners import explained
from tile_eg.explore.why_not import why_not
from tile_eg.frontend.ssa import to_values
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning
from tile_eg.transforms.split_k import divisible

EXP = PRODUCT.replace("= c\n}", "= exp(c)\n}")
TWO = """
kernel gated[M=16, N=64, K=16384, BK=128](A: f16[M, K], G: f16[K, N], U: f16[K, N]) -> C: f16[M, N] {
  grid bx = 1
  shared a: f16[M, BK], g: f16[BK, N], u: f16[BK, N]
  fragment x: f32[M, N] = 0, y: f32[M, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[0, k*BK]
    g = G[k*BK, 0]
    u = U[k*BK, 0]
    x += a @ g
    y += a @ u
  }
  C[0, 0] = x * y
}
"""


@lru_cache
def skinny(**options) -> Lowered:
    return lower(kernel(PRODUCT, M=30, N=60, K=16384), search=search_options(**options))


def parts_of(low: Lowered) -> int | None:
    chosen = low.candidates[0].schedule.parts
    return chosen.payload[0] if chosen and chosen.op == "Parts" else None


@pytest.mark.slow
def test_a_long_sum_of_one_tile_goes_to_many_cores():
    assert parts_of(skinny()) == 16
    assert skinny().cost.microseconds < skinny(without=("split-depth",)).cost.microseconds / 4


FOLDS = """
kernel folded[M=8192, N=64, BM=16](X: f16[M, N], W: f16[N]) -> (S: f32[N], L: f16[N]) {
  grid bx = 1
  shared x: f16[BM, N], w: f16[N]
  fragment s: f32[N] = 0, l: f16[N] = inf
  w = W[0]
  for k in serial(ceildiv(M, BM)) {
    x = X[k*BM, 0]
    s = s + colsum(f32(x) * f32(x))
    l = min(l, colmin(x))
  }
  S[0] = s * f32(w)
  L[0] = l
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [FOLDS, FOLDS.replace("min", "max").replace("inf", "-inf")])
def test_sums_and_extremes_of_what_vector_cores_compute_go_to_all_cores(text):
    k = kernel(text)
    low = lower(k)
    assert parts_of(low) in (16, 32)
    x = np.random.default_rng(7).uniform(-1, 1, (8192, 64)).astype(np.float16)
    runs = [low.run({"X": x, "W": np.ones(64, np.float16)}, order=order) for order in (None, -3)]
    assert np.allclose(runs[0]["S"], (x.astype(np.float64) ** 2).sum(0), rtol=1e-4)
    assert (runs[0]["L"] == (x.min(0) if "min" in text else x.max(0))).all()
    assert runs[0]["S"].tobytes() == runs[1]["S"].tobytes()


@pytest.mark.slow
def test_the_last_part_of_a_sum_of_vector_cores_may_be_shorter():
    k = kernel(FOLDS, M=8009)
    low = lower(k)
    assert 501 % parts_of(low) > 0
    x = np.random.default_rng(7).uniform(-1, 1, (8009, 64)).astype(np.float16)
    got = low.run({"X": x, "W": np.ones(64, np.float16)})
    assert np.allclose(got["S"], (x.astype(np.float64) ** 2).sum(0), rtol=1e-4)
    assert parts_of(lower(k, search=search_options(without=("split-folds",)))) is None


DECAY = ("s + colsum(f32(x) * f32(x))", "s * 0.5 + colsum(f32(x))")
SCALED = ("l = min(l, colmin(x))", "l = min(l, colmin(x * f16(s)[None, :]))")


@pytest.mark.parametrize("change", [DECAY, SCALED])
def test_what_goes_by_the_trips_before_stays_in_one_block(change):
    assert divisible(to_values(kernel(FOLDS.replace(*change)))) is None


@pytest.mark.slow
def test_a_short_sum_stays_whole():
    assert parts_of(lower(kernel(PRODUCT))) is None


@pytest.mark.slow
def test_tiles_for_all_cores_stay_whole():
    low = lower(kernel(PRODUCT, M=512, N=1024, K=4096), search=search_options(without=("blocks-together",)))
    assert not any(g.op == "Parts" for g in low.extraction.best.graph.grids)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"without": ("split-depth",)}, {"exact_math": True}, {"effort": "none"}])
def test_it_can_be_switched_off(options):
    assert parts_of(skinny(**options)) is None


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("text", [PRODUCT, EXP, TWO])
def test_the_result_is_right_and_the_same_in_every_order(text):
    k = kernel(text, K=16384, **({"M": 30, "N": 60} if text is PRODUCT else {}))
    low = lower(k)
    assert parts_of(low)
    random = np.random.default_rng(7)
    given = {t.name: random.uniform(-0.02, 0.02, t.shape).astype(np.float16) for t in k.tensors if not t.output}
    runs = [low.run(given, order=order)["C"] for order in (None, 1, -3)]
    assert np.allclose(runs[0].astype(float), meaning(k, given)["C"].astype(float), rtol=2e-3, atol=2e-3)
    assert runs[0].tobytes() == runs[1].tobytes() == runs[2].tobytes()


FLOATS = PRODUCT.replace("C: f16", "C: f32")


@lru_cache
def in_floats(**options) -> Lowered:
    return lower(kernel(FLOATS, M=30, N=60, K=16384), search=search_options(**options))


@pytest.mark.slow
def test_sums_that_are_stored_as_they_are_are_added_where_they_lie():
    assert in_floats().candidates[0].schedule.parts.op == "Added"
    assert in_floats().cost.microseconds < in_floats(without=("split-depth-added",)).cost.microseconds


@pytest.mark.slow
def test_they_are_right_in_any_order():
    low = in_floats()
    random = np.random.default_rng(8)
    given = {t.name: random.uniform(-1, 1, t.shape).astype(np.float16) for t in low.kernel.tensors if not t.output}
    want = meaning(low.kernel, given)["C"]
    for order in (None, 2, -3):
        assert np.allclose(low.run(given, order=order)["C"], want, rtol=1e-4, atol=1e-3)


@pytest.mark.slow
def test_without_the_rule_their_order_is_fixed():
    assert in_floats(without=("split-depth-added",)).candidates[0].schedule.parts.op == "Parts"


@pytest.mark.slow
def test_explain_tells_of_additions_in_gm():
    text = str(explained(in_floats()))
    assert "the first parts are stored; all cores meet; the others are added" in text
    assert "split-depth-added" in text


@pytest.mark.slow
def test_the_fixed_order_has_its_price():
    assert " (+" in str(why_not(in_floats(), "grid=parts,16"))


@pytest.mark.slow
def test_explain_shows_both_phases_and_the_rule():
    text = str(explained(skinny()))
    assert "all cores meet" in text
    assert "split-depth" in text
    assert "16 parts of each sum" in text


@pytest.mark.slow
def test_other_numbers_of_parts_have_their_price():
    assert "parts of each sum instead of 16" in str(why_not(skinny(), "grid=parts,2"))


@pytest.mark.slow
def test_why_not_in_one_part_is_answered():
    assert "grid: a block a tile instead of 16 parts of each sum" in str(why_not(skinny(), "grid=blocks"))


@pytest.mark.long
def test_a_kernel_that_stays_whole_tells_what_parts_would_cost():
    assert " (+" in str(why_not(lower(kernel(PRODUCT)), "rule=split-depth"))


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B4", "950"])
def test_all_cores_of_a_chip_meet_whatever_their_number(chip: str) -> None:
    low = lower(kernel(PRODUCT, M=30, N=60, K=4096), chip)
    assert parts_of(low)
    rng = np.random.default_rng(0)
    arrays = {t.name: rng.uniform(-1, 1, t.shape).astype(t.dtype.numpy) for t in low.kernel.tensors if not t.output}
    np.testing.assert_allclose(low.run(arrays).outputs["C"], meaning(low.kernel, arrays)["C"], rtol=1e-2, atol=1e-2)
