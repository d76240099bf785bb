"""Loads that a loop of vector cores issues a trip ahead: where V's queue is full, and that the numbers stay the same."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.emit.sync.check import races
from tile_eg.extract.schedule import Schedule
from tile_eg.ir.program import Instr, Loop, When, walk
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning, plan_schedule
from tile_eg.search.loads_ahead import queued
from tile_eg.search.steady import rebuilt

SUMS = """
kernel sums[M=1024, N=8192, BM=8, BN=1024](X: f16[M, N]) -> S: f32[M] {
  grid bx = ceildiv(M, BM)
  shared x: f16[BM, BN]
  fragment f: f32[BM, BN], m: f32[BM] = -inf, n: f32[BM], l: f32[BM] = 0
  for k in pipelined(ceildiv(N, BN)) {
    x = X[bx*BM, k*BN]
    f = x
    n = max(m, rowmax(f))
    l = l * exp(m - n) + rowsum(exp(f - n[:, None]))
    m = n
  }
  S[bx*BM] = log(l) + m
}
"""
SHORT = """
kernel short[M=4096, N=1024, BM=16](X: f32[M, N], Y: f32[M, N]) -> C: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, 128], y: f32[BM, 128]
  for k in pipelined(8) {
    x = X[bx*BM, k*128]
    y = Y[bx*BM, k*128]
    C[bx*BM, k*128] = x + y
  }
}
"""
IN_PLACE = """
kernel again[M=256, N=1024, BM=16](X: f32[M, N]) -> (C: f32[M, N], D: f32[M, N]) {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, 128], y: f32[BM, 128]
  for k in pipelined(8) {
    x = X[bx*BM, k*128]
    C[bx*BM, k*128] = exp(x)
    y = C[bx*BM, k*128]
    D[bx*BM, k*128] = y * x
  }
}
"""
SMALL = {"M": 60, "N": 500, "BN": 128}


@cache
def compiled(text: str, *without: str, **sizes: int) -> Lowered:
    return lower(kernel(text, **sizes), search=search_options(without=without))


def early(low: Lowered, schedule: Schedule) -> Schedule:
    (made,) = rebuilt(low.form, schedule, early=True)
    return made


@pytest.mark.slow
def test_where_a_trip_fills_v_s_queue_its_successor_s_loads_come_first() -> None:
    low = compiled(SUMS)
    assert queued(compiled(SUMS, "loads-ahead").candidates[0], low.chip) > low.chip.limits.queue_depth
    assert low.candidates[0].schedule.early
    assert low.cost.microseconds < 0.95 * compiled(SUMS, "loads-ahead").cost.microseconds


@pytest.mark.slow
def test_a_trip_that_the_queue_holds_has_nothing_to_gain() -> None:
    low = compiled(SHORT)
    assert queued(low.candidates[0], low.chip) <= low.chip.limits.queue_depth
    assert [t.why for t in low.tried if t.offer.move.name == "loads-ahead"] == ["there is nothing for it to do"]


@pytest.mark.slow
def test_the_loads_of_a_trip_stand_before_the_work_of_the_one_before_it() -> None:
    program = compiled(SUMS).program
    loop = next(n for n in walk(program.vector) if isinstance(n, Loop) and n.var == "k")
    load, work = (n for n in loop.body if isinstance(n, When))
    assert [n.op for n in walk(load.body) if isinstance(n, Instr)] == ["gm_to_ub"]
    assert all(n.op != "gm_to_ub" for n in walk(work.body) if isinstance(n, Instr))


def test_the_schedule_says_so() -> None:
    assert "loads a trip ahead" in str(compiled(SUMS).schedule)
    assert "loads in loops: as a trip begins instead of a trip ahead" in str(compiled(SUMS).explanation)


@pytest.mark.slow
def test_what_a_loop_stores_is_not_loaded_a_trip_ahead() -> None:
    low = compiled(IN_PLACE, "load-of-store")
    made = early(low, low.candidates[0].schedule)
    lag = {step.srcs[0]: step.lag for step, around in made.walk() if around and step.node.op == "GmToUB"}
    assert (lag["X"], lag["C"]) == (0, 1)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize(
    ("text", "sizes"), [(SUMS, SMALL), (SHORT, {"M": 90}), (IN_PLACE, {"M": 90})], ids=["sums", "short", "own"]
)
def test_the_numbers_are_the_same(text: str, sizes: dict[str, int], chip: str) -> None:
    k = kernel(text, **sizes)
    low, arrays = lower(k, chip, search=search_options(without=["load-of-store"])), arrays_for(k)
    meant = meaning(k, arrays)
    for c in [c for c in low.form.candidates if not c.schedule.finished][:3]:
        planned = plan_schedule(early(low, c.schedule), low.chip)
        ran = planned.run(arrays)
        for name in meant:
            np.testing.assert_allclose(ran[name].astype(float), meant[name].astype(float), rtol=2e-3, atol=2e-3)
        assert not ran.findings and not races(planned.program)
