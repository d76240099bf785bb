"""How far the cores of a loop run ahead of each other."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from tests.extract.checked import check_numbers
from tests.extract.kernels import CHIP, graph_of, kernel
from tile_eg.extract import Schedule, extract
from tile_eg.extract.buffers import Buffer
from tile_eg.extract.exact import Exact
from tile_eg.extract.makespan import loop_time
from tile_eg.extract.model import Model

ATTENTION = """
kernel attention[S=1024, D=64, BM=64, BN=64](Q: f16[S, D], K: f16[S, D], V: f16[S, D]) -> O: f16[S, D] {
  grid bx = ceildiv(S, BM)
  shared   q: f16[BM, D], k: f16[BN, D], v: f16[BN, D], p: f16[BM, BN]
  fragment s: f32[BM, BN], o: f32[BM, D] = 0
  q = Q[bx*BM, 0]
  for j in pipelined(ceildiv(S, BN)) {
    k = K[j*BN, 0]
    s = exp(q @ k.T)
    p = s
    v = V[j*BN, 0]
    o += p @ v
  }
  O[bx*BM, 0] = o
}
"""
SUMS = """
kernel sums[S=1024, D=64, BM=64, BN=64](Q: f16[S, D], K: f16[S, D]) -> L: f32[S] {
  grid bx = ceildiv(S, BM)
  shared   q: f16[BM, D], k: f16[BN, D]
  fragment s: f32[BM, BN], l: f32[BM] = 0
  q = Q[bx*BM, 0]
  for j in pipelined(ceildiv(S, BN)) {
    k = K[j*BN, 0]
    s = exp(q @ k.T)
    l += rowsum(s)
  }
  L[bx*BM] = l
}
"""


@lru_cache
def schedules(text: str) -> list[Schedule]:
    found = extract(graph_of(text), CHIP, k=8)
    return [found.best, *found.alternatives]


def skew(schedule: Schedule) -> int:
    return next(n.payload[1] for n in schedule.nodes if n.op == "Skew")


def lags(schedule: Schedule) -> dict[str, int]:
    """By instruction and the buffer that it fills."""
    return {f"{s.node.op} {schedule.storages[s.dst].name}": s.lag for s, around in schedule.walk() if around}


@pytest.mark.slow
def test_one_choice_is_offered_with_every_skew():
    assert {skew(s) for s in schedules(ATTENTION)} == {0, 1, 2, 3, 4}


@pytest.mark.slow
def test_a_loop_in_which_the_cores_meet_one_way_is_not_skewed_far():
    assert max(skew(s) for s in schedules(SUMS)) == 2


def test_each_crossing_between_cores_adds_as_many_half_trips_as_the_skew_says():
    found = lags(next(s for s in schedules(ATTENTION) if skew(s) == 3))
    assert [found[x] for x in ("FixToWS s", "UBToWS p", "WsToL1Strips p")] == [0, 1, 3]


def test_a_load_that_waits_for_nothing_goes_with_its_first_reader():
    found = lags(next(s for s in schedules(ATTENTION) if skew(s) == 4))
    assert found["GmToL1 v"] == found["WsToL1Strips p"] == 4 and found["GmToL1 k"] == 0


def test_a_ring_deeper_than_its_loops_comes_round_with_them():
    for schedule in schedules(ATTENTION):
        deepest = max(n.payload[-1] for n in schedule.nodes if n.op == "Buffers")
        deep = [s.slots for s in schedule.storages.values() if s.ring and s.slots > deepest]
        assert all(slots % 3 == 0 for slots in deep)


THREE = [Buffer(3, "AIC.MTE2", 0, refill=CHIP.sync.refill)]


@pytest.mark.parametrize(("skew", "cycles"), [(1, 4000), (3, 3010)])
def test_there_and_back_a_trip_waits_for_one_before_it_or_for_the_slowest_pipe(skew, cycles):
    pipes = {"AIC.M": 3000, "AIV.V": 3000}
    long, short = (loop_time(n, skew, pipes, THREE, 0, True, True, 1000) for n in (200, 100))
    assert (long - short) // 100 == cycles


FLASH = (Path(__file__).parents[2] / "examples" / "flash_attention.tile").read_text("utf-8")


def scaled_before(length: int) -> bool:
    best = extract(graph_of(FLASH, S=length, BM=128, BN=128), CHIP).best
    return any(s.node.op == "VBinS" and not around for s, around in best.walk())


@pytest.mark.slow
def test_an_operand_is_scaled_before_a_long_loop():
    assert scaled_before(16384)


@pytest.mark.slow
def test_a_short_loop_does_not_wait_for_a_scaled_operand():
    assert not scaled_before(1024)


class Scaled(Exact):
    """The shortest schedule that scales an operand before the loop."""

    def aim(self, model: Model) -> None:
        scaled = [n for n in model.graph.nodes if n.op == "VBinS" and n.region == 0 and "mul" in n.payload]
        model.cp.add_bool_or([model.chosen[n.index] for n in scaled])
        super().aim(model)


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, (3, 0, 0)], ids=["blocks", "tiles"])
def test_an_operand_that_is_scaled_before_the_loop_gives_the_same(order):
    check_numbers(kernel(FLASH, S=256, H=2), Scaled(), order=order)


def test_what_a_tile_waits_for_first_fills_the_way_twice():
    pipes = {"AIC.M": 3000, "AIV.V": 3000}
    once, twice = (loop_time(10, 1, pipes, THREE, 0, True, False, 500, fills) for fills in (1, 2))
    assert twice - once == 6000 + 3 * 500 - 3000
