"""Steady trips: a skewed loop ordered, and given its places, for the trips that run while it is full."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import kernel
from tile_eg.chips import load_chip
from tile_eg.explore.otherwise import Otherwise
from tile_eg.explore.runners import flips
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.exact import Exact
from tile_eg.extract.schedule import LoopStep
from tile_eg.ir.program import AIC, Instr, When, walk
from tile_eg.search.compiler import Lowered, lower

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIRS = """
kernel pairs[S=256, D=32, BM=32, BN=32](Q: f16[BM, D], K: f16[S, D], V: f16[S, D]) -> O: f16[BM, D] {
  grid x = 1
  shared   q: f16[BM, D], k: f16[BN, D], n: f16[BN, D], v: f16[BN, D], w: f16[BN, D], p: f16[BM, BN], r: f16[BM, BN]
  fragment s: f32[BM, BN], t: f32[BM, BN], o: f32[BM, D] = 0, a: f32[BM, D], m: f32[BM] = 0
  q = Q[0, 0]
  for j in pipelined(ceildiv(S, 2*BN)) {
    k = K[2*j*BN, 0]
    n = K[2*j*BN + BN, 0]
    s = q @ k.T
    t = q @ n.T
    m = max(m, max(rowmax(s), rowmax(t)))
    p = exp(s - m[:, None])
    r = exp(t - m[:, None])
    v = V[2*j*BN, 0]
    w = V[2*j*BN + BN, 0]
    a = p @ v
    a += r @ w
    o = o * m[:, None] + a
  }
  O[0, 0] = o
}
"""


@cache
def compiled() -> Lowered:
    """Attention with 256 keys a trip."""
    text = (EXAMPLES / "flash_attention.tile").read_text("utf-8")
    return lower(kernel(text, S=4096, H=16, D=128, BM=128, BN=256), "910B2")


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("order", [None, (1, 0, 0)], ids=["a block a tile", "persistent"])
@pytest.mark.parametrize("extractor", [Exact(), Worst(), Random(0), Random(1)], ids=["exact", "worst", "random", "random too"])
def test_steady_trips_compute_what_the_kernel_means(extractor, order):
    check_numbers(kernel(PAIRS), extractor, order, steady=True)


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, (1, 0, 0)], ids=["a block a tile", "persistent"])
def test_results_that_take_places_in_turns_are_what_the_kernel_means(order):
    check_numbers(kernel(PAIRS, S=1280, D=64, BM=128, BN=128), Exact(), order, steady=True)


@pytest.mark.long
def test_no_result_has_the_place_in_l0c_of_the_one_before_it():
    schedule = compiled().ranked[0].schedule
    (loop,) = [i for i in schedule.top if isinstance(i, LoopStep)]
    made = list(dict.fromkeys((s.dst, s.lag) for s in loop.body if s.node.op in ("Mmad", "MmadAcc")))
    at = [schedule.addresses[r][(trip - lag) % len(schedule.addresses[r])] for trip in range(4) for r, lag in made]
    assert len(made) == 3 and all(a != b for a, b in zip(at, at[1:], strict=False))


@pytest.mark.long
@pytest.mark.slow
def test_products_of_a_steady_loop_take_the_slots_of_l0_in_turns():
    mmads = [n for n in walk(compiled().program.core(AIC)) if isinstance(n, Instr) and n.op == "mmad"]
    places = {b.name: b.addresses for b in compiled().program.buffers}
    assert [places[m.srcs[0].buffer][0] > 0 for m in mmads] == [False, True, False, True]


@pytest.mark.slow
def test_a_product_of_a_steady_loop_has_a_guard_of_its_own():
    guards = [n for n in walk(compiled().program.core(AIC)) if isinstance(n, When)]
    products = [{i.op for i in walk(g.body) if isinstance(i, Instr)} for g in guards]
    assert sum(ops == {"l1_to_l0a", "l1_to_l0b", "mmad"} for ops in products) == 4


@pytest.mark.slow
def test_what_is_made_of_a_load_in_its_place_does_not_let_others_have_it():
    schedule = compiled().ranked[0].schedule
    loads = {s.dst for s, _ in schedule.walk() if s.node.op == "WsToUB"}
    taken = {sid: schedule.addresses[sid][0] for sid in loads}
    assert len(set(taken.values())) == len(loads) == 3


@pytest.mark.slow
def test_what_is_added_lies_in_two_bank_groups_though_the_sum_goes_round():
    schedule = compiled().ranked[0].schedule
    wide = [s.srcs for s, _ in schedule.walk() if s.node.op == "VBin" and schedule.storages[s.dst].rows > 1]
    size = load_chip("910B2").vector.repeat_bytes
    assert [sorted(schedule.addresses[i][0] // size % 2 for i in srcs) for srcs in wide] == [[0, 1]]


@pytest.mark.slow
def test_the_schedule_that_the_search_model_finds_cheapest_is_made_steady_first():
    steady = [c.schedule for c in compiled().ranked if c.schedule.steady]
    others = [c.schedule for c in compiled().form.candidates if not c.schedule.steady]
    assert {s.cost for s in steady} == {min(s.cost for s in others)}


@pytest.mark.slow
def test_attention_with_256_keys_a_trip_goes_through_l0c_in_parts():
    whole = [t.microseconds for t in compiled().tried if t.offer.form and not t.offer.form.moves and t.microseconds]
    assert compiled().form.moves == ("column-parts 2",)
    assert compiled().timeline.microseconds < 0.85 * min(t for t in whole if t > compiled().timeline.microseconds)


@pytest.mark.slow
def test_of_four_products_in_a_trip_the_steady_schedule_is_the_fastest():
    steady = [c.microseconds for c in compiled().ranked if c.schedule.steady]
    others = [c.microseconds for c in compiled().ranked if not c.schedule.steady]
    assert min(steady) < 0.85 * min(others)


@pytest.mark.slow
def test_a_kernel_without_a_skewed_loop_has_no_steady_one():
    low = lower(kernel((EXAMPLES / "vector_add.tile").read_text("utf-8")))
    assert not any(isinstance(i, LoopStep) and i.skew for i in low.ranked[0].schedule.top)
    assert all(t.offer.move.name != "steady-trips" for t in low.tried)


@pytest.mark.long
def test_positions_of_a_mask_are_made_once_where_trips_could_make_them():
    text = (EXAMPLES / "attention" / "grouped_query.tile").read_text("utf-8")
    sizes = {"B": 1, "S": 4096, "H": 24, "G": 24, "D": 128, "BM": 128, "BN": 256}
    best = lower(kernel(text, **sizes), "910B2").candidates[0].schedule
    loops = [x for x in best.top if isinstance(x, LoopStep)]
    assert not any(step.node.op == "VRamp" for step, around in best.walk() if around) and len(loops) == 1


@pytest.mark.slow
def test_a_runner_up_is_priced_in_the_order_that_the_chosen_schedule_has():
    low = lower(kernel(PAIRS), "910B2")
    otherwise = Otherwise(low, plain=True)
    otherwise.chosen = next(c for c in low.candidates if c.schedule.steady and not c.schedule.persistent)
    found = (candidate for _, _, candidate in flips(otherwise) if candidate)
    assert next(found).schedule.steady
