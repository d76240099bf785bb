"""Tiles that fill no turn of all cores, in parts of their sums: the numbers are right, and it is taken where that is faster."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache, partial

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tests.search.test_packed_operand import ADDED, in_strips
from tests.transforms.test_packed_operand import BOTH_DOWN, BYTES, GEMM, TRANSPOSED
from tile_eg.explore.runners import explained
from tile_eg.explore.why_not import why_not
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.values import Values, reachable
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, Planned, lower, meaning, plan_schedule
from tile_eg.search.persistent import best_persistent
from tile_eg.search.rest import _least, _made, _parts, rest_of, tiles_of, with_rest
from tile_eg.transforms.deeper_trips import in_deeper_trips
from tile_eg.transforms.split_k import in_parts

FLOATS, SHORT = GEMM.replace("f16[", "f32["), GEMM.replace("f16[", "bf16[")
ODD = {"M": 460, "N": 384, "K": 350}
TWO_SUMS = """
kernel two_sums[M=900, N=384, K=250, BM=32, BN=64, BK=64](A: f16[M, K], B: f16[K, N], D: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], b: f16[BK, BN], d: f16[BK, BN]
  fragment c: f32[BM, BN] = 0, e: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    d = D[k*BK, by*BN]
    c += a @ b
    e += a @ d
  }
  C[bx*BM, by*BN] = c * sigmoid(e)
}
"""
LARGE = {"M": 4096, "N": 4096, "K": 4096, "BM": 128, "BN": 256}
EVEN = {"M": 4096, "N": 1536, "K": 512, "BM": 128, "BN": 256}


def in_rest(k: Kernel, chip: str, count: int, factor: int, packed: bool) -> Planned:
    """The kernel with the tiles that fill no turn in so many parts, of trips `factor` times as deep, whether that is faster or
    not; behind or in front of a copy."""
    low = lower(k, chip=chip)
    schedule = in_strips(k, chip).schedule if packed else best_persistent(low.form).schedule
    parts = in_parts(_deeper(low.form.values, factor), count, 1, tiles_of(low.form, schedule))
    rest, dropped = rest_of(low.form, parts)
    assert rest, dropped
    return plan_schedule(next(with_rest(schedule, rest, low.form)), low.chip)


def _deeper(values: Values, factor: int) -> Values:
    loops = [t for t in reachable(values) if t.op == "loop"]
    return values if factor == 1 else in_deeper_trips(values, factor, loops)


CASES = [
    pytest.param(GEMM, {"M": 460}, True, id="even"),
    pytest.param(GEMM, ODD, False, id="tails"),
    pytest.param(TRANSPOSED, {"M": 460, "N": 390, "K": 384}, True, id="transposed", marks=pytest.mark.long),
    pytest.param(BOTH_DOWN, ODD, True, id="both operands", marks=pytest.mark.long),
    pytest.param(ADDED, {"M": 900}, False, id="vector work"),
    pytest.param(BYTES, {"M": 460, "N": 390, "K": 640}, False, id="bytes"),
    pytest.param(TWO_SUMS, {}, False, id="two sums of short tiles"),
    pytest.param(FLOATS, ODD, False, id="f32", marks=pytest.mark.long),
    pytest.param(SHORT, ODD, True, id="bf16", marks=pytest.mark.long),
]


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(("text", "sizes", "packed"), CASES)
@pytest.mark.parametrize(
    ("chip", "count", "factor", "order"),
    [("910B2", 2, 1, 1), pytest.param("950", 2, 2, None, marks=pytest.mark.long)],
)
def test_numbers_are_those_of_the_source(text, sizes, packed, chip, count, factor, order):
    k = kernel(text, **sizes)
    arrays = arrays_for(k)
    ran = in_rest(k, chip, count, factor, packed).run(arrays, order=order)
    assert not ran.findings
    near = 2e-2 if text is SHORT else 4e-3
    for name, want in meaning(k, arrays).items():
        np.testing.assert_allclose(ran[name].astype(np.float32), want.astype(np.float32), rtol=near, atol=5 * near)


@pytest.mark.slow
def test_a_schedule_that_ran_out_of_flags_is_planned_again_like_the_first_time():
    k = kernel(TWO_SUMS)
    low = lower(k, chip="950", search=search_options(without=("rest-in-parts",)))
    arrays = arrays_for(k)
    ran = plan_schedule(replace(best_persistent(low.form).schedule), low.chip).run(arrays, order=1)
    np.testing.assert_allclose(ran["C"].astype(np.float32), meaning(k, arrays)["C"].astype(np.float32), rtol=4e-3, atol=2e-2)


@lru_cache
def large(**options: object) -> Lowered:
    return lower(kernel(GEMM, **LARGE), search=search_options(**options))


def of(low: Lowered) -> tuple[int, int] | None:
    rest = low.chosen.schedule.rest
    return (rest.parts, rest.tiles) if rest else None


@pytest.mark.slow
def test_a_large_product_takes_it():
    assert of(large()) == (3, 8)
    assert large().cost.microseconds < 0.98 * large(without=("rest-in-parts",)).cost.microseconds


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"without": ("rest-in-parts",)}, {"exact_math": True}, {"effort": "none"}])
def test_it_can_be_switched_off(options):
    assert of(large(**options)) is None


@pytest.mark.long
def test_sums_in_parts_are_the_same_in_every_run():
    assert of(large(deterministic=True)) == (3, 8)


@pytest.mark.slow
def test_all_other_tiles_are_done_in_whole_turns():
    schedule = large().chosen.schedule
    assert schedule.tiles[0] == 8 and schedule.second.tiles[0] == sum(schedule.tiles) and sum(schedule.second.tiles) == 512
    assert schedule.tiles[1] % 24 == schedule.second.tiles[1] % 24 == 0


@pytest.mark.slow
def test_explain_shows_what_is_done_in_parts_and_why_not_what_it_saves():
    text = str(explained(large()))
    assert "sums of the first 8 tiles, in 3 parts each" in text and "what is made of these sums" in text
    assert "tiles that fill no turn: whole instead of 3 parts of each sum" in text
    assert " (" in str(why_not(large(), "rest-in-parts"))


@pytest.mark.slow
def test_whole_turns_have_no_rest():
    low = lower(kernel(GEMM, **EVEN))
    assert not any(t.offer.move.name == "rest-in-parts" for t in low.tried)


@pytest.mark.long
def test_it_is_not_made_of_a_launch_that_does_all_sums_in_parts():
    candidates = lower(kernel(GEMM, M=416, N=128, K=8192)).form.candidates
    split = [c for c in candidates if c.schedule.persistent and c.schedule.parts and c.schedule.parts.op == "Parts"]
    assert split and not any(c.schedule.rest for c in split)


@pytest.mark.slow
def test_parts_that_take_as_long_as_a_turn_are_not_searched():
    options = search_options(without=("operand-in-strips",))
    low = lower(kernel(GEMM, M=1024, N=2048, K=4096, BM=128, BN=256), search=options)
    (tried,) = (t for t in low.tried if t.offer.move.name == "rest-in-parts")
    assert not tried.made and "bound is no better" in tried.why


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1024, 1024, 1024), (1000, 1000, 1000), (900, 4000, 640), (1024, 1024, 8192)])
def test_sums_and_whole_turns_take_no_less_than_their_bound(sizes):
    at = dict(zip("MNK", sizes, strict=True), BM=128, BN=256, BK=64)
    left_out = ("rest-in-parts", "packed-operand", "shuffle-k", "split-k")
    form = lower(kernel(GEMM, **at), search=search_options(without=left_out)).form
    parts = cache(partial(_parts, form))
    made = _made(form, parts).microseconds
    assert 0.85 * made < _least(form, parts) <= made


@pytest.mark.slow
def test_where_the_bound_shows_that_it_is_slower_no_sums_are_searched():
    low = lower(kernel(GEMM, M=1024, N=1024, K=1024, BM=128, BN=256))
    assert [t.made for t in low.tried if t.offer.move.name == "rest-in-parts"] == [False]
