"""A long sum in parts: the same numbers, for any tiles, and only where nothing else hangs on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extract.kernels import GATED, kernel
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.index import BLOCK, evaluate, var
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import reachable
from tile_eg.search.compiler import meaning
from tile_eg.transforms.deeper_trips import in_deeper_trips
from tile_eg.transforms.split_k import Tiles, addable, added, divisible, fits, in_parts

PRODUCT = """
kernel product[M=40, N=24, K=100, BM=16, BN=16, BK=16](A: f32[M, K], B: f32[K, N], R: f32[N]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f32[BM, BK], b: f32[BK, BN], r: f32[BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  r = R[by*BN]
  C[bx*BM, by*BN] = max(c, 0) + r[None, :]
}
"""
IN_A_LOOP = """
kernel looped[M=32, N=32, K=64](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[16, 16], b: f16[16, N]
  fragment c: f32[16, N]
  for i in serial(2) {
    c = 0
    for k in serial(4) {
      a = A[i*16, k*16]
      b = B[k*16, 0]
      c += a @ b
    }
    C[i*16, 0] = c
  }
}
"""
CHAINED = """
kernel chained[M=32, K=64](A: f16[M, K], B: f16[K, M], D: f16[M, M]) -> C: f32[M, M] {
  grid bx = 1
  shared a: f16[M, 16], b: f16[16, M], d: f16[M, M], p: f16[M, M]
  fragment c: f32[M, M] = 0
  for k in serial(4) {
    a = A[0, k*16]
    b = B[k*16, 0]
    c += a @ b
  }
  d = D[0, 0]
  p = c
  C[0, 0] = p @ d
}
"""
BIASED = PRODUCT.replace("c: f32[BM, BN] = 0", "c: f32[BM, BN] = 1")


def whole_numbers(k):
    """Small whole numbers: their sums are exact in any order."""
    random = np.random.default_rng(5)
    return {t.name: random.integers(-4, 5, t.shape).astype(t.dtype.numpy) for t in k.tensors if not t.output}


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 70), st.integers(1, 40), st.integers(17, 130), st.sampled_from([1, 2, 8]), st.data())
def test_two_phases_have_the_meaning_of_the_whole(m, n, depth, panels, data):
    k = kernel(PRODUCT, M=m, N=n, K=depth)
    values, given_ = to_values(k), whole_numbers(k)
    trips = divisible(values)
    count = data.draw(st.sampled_from([s for s in range(1, trips + 1) if trips % s == 0]))
    parts = in_parts(values, count, panels)
    sums = run_values(parts.first, given_)
    assert np.array_equal(run_values(parts.second, given_ | sums)["C"], meaning(k, given_)["C"])


def test_every_sum_of_a_loop_goes_in_parts():
    parts = in_parts(to_values(kernel(GATED)), 2)
    assert [t.name for t in parts.first.shared] == ["sums", "sums2"]


def test_each_part_has_a_block_of_its_own():
    values = to_values(kernel(PRODUCT, K=96))
    assert in_parts(values, 3).first.blocks == 3 * values.blocks


def test_the_second_phase_has_a_block_for_each_panel():
    values = to_values(kernel(PRODUCT, M=64, N=64, K=96, BM=64, BN=64))
    assert in_parts(values, 3, 4).second.blocks == 4


@pytest.mark.parametrize("text", [IN_A_LOOP, CHAINED, BIASED])
def test_what_hangs_on_its_order_stays_whole(text):
    assert divisible(to_values(kernel(text))) is None


SUMS = PRODUCT.replace("max(c, 0) + r[None, :]", "c")


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(17, 130), st.data())
def test_parts_that_are_added_up_have_the_meaning_of_the_whole(m, n, depth, data):
    k = kernel(SUMS, M=m, N=n, K=depth)
    values, given_ = to_values(k), whole_numbers(k)
    trips = divisible(values)
    count = data.draw(st.sampled_from([s for s in range(1, trips + 1) if trips % s == 0]))
    assert np.array_equal(run_values(added(values, count), given_)["C"], meaning(k, given_)["C"])


@pytest.mark.parametrize(("text", "may"), [(SUMS, True), (PRODUCT, False), (SUMS.replace("C: f32", "C: f16"), False)])
def test_only_sums_that_are_stored_as_they_are_may_be_added_up(text, may):
    assert addable(to_values(kernel(text))) == may


# ---- some tiles of a kernel -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(33, 70), st.integers(17, 40), st.integers(40, 130), st.sampled_from([1, 2]), st.data())
def test_some_tiles_in_unequal_parts_have_the_meaning_of_the_whole(m, n, depth, factor, data):
    k = kernel(PRODUCT, M=m, N=n, K=depth)
    values, given_, down = to_values(k), whole_numbers(k), -(-m // 16)
    form = values if factor == 1 else in_deeper_trips(values, factor, [t for t in reachable(values) if t.op == "loop"])
    trips = divisible(form)
    count = data.draw(st.sampled_from([s for s in range(1, trips + 1) if fits(trips, s)]))
    parts = in_parts(form, count, data.draw(st.sampled_from([1, 4])), Tiles(2, var(BLOCK) + down))
    got = run_values(parts.second, given_ | run_values(parts.first, given_))["C"]
    assert np.array_equal(got[:32, 16:32], meaning(k, given_)["C"][:32, 16:32])


def test_tiles_in_parts_have_the_valid_rows_of_their_own_number():
    k = kernel(PRODUCT)
    random = np.random.default_rng(3)
    given_ = {t.name: random.integers(-8, 8, t.shape).astype(np.float32) for t in k.tensors if not t.output}
    parts = in_parts(to_values(k), 2, 1, Tiles(3, 5 - var(BLOCK)))  # from below, the short tile first
    got = run_values(parts.second, given_ | run_values(parts.first, given_))["C"]
    assert np.array_equal(got[:, 16:], meaning(k, given_)["C"][:, 16:])
    sums = [t for t in reachable(parts.second) if t.op == "load" and t.args[0].args[0].name == "sums"]
    assert [[evaluate(t.vrows, {BLOCK: b}) for b in range(3)] for t in sums] == [[8, 16, 16]]


@pytest.mark.parametrize(("trips", "count", "may"), [(64, 3, True), (4, 3, False), (5, 3, True), (3, 3, True), (3, 4, False)])
def test_only_the_last_part_may_be_shorter_and_it_has_a_trip(trips, count, may):
    assert fits(trips, count) is may


def test_a_shorter_last_part_is_told_by_the_block():
    parts = in_parts(to_values(kernel(PRODUCT, K=80)), 2)
    ((loop, count),) = parts.first.counts.items()
    assert [evaluate(count, {BLOCK: b}) for b in (0, parts.first.blocks - 1)] == [3, 2]
    assert (parts.first.trips[loop], parts.first.fewest[loop]) == (3, 2)
