"""What a schedule takes at the least is known before its flags: no plan beats it, and it is near where a pipe is always busy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.emit.test_tasks import KERNELS, best, grid, program
from tests.extract.kernels import CHIP, graph_of
from tile_eg.cost_models import rank_model
from tile_eg.emit import lower as lowering
from tile_eg.extract import extract
from tile_eg.extract.grid import with_grid
from tile_eg.ir.index import both, const, less, var
from tile_eg.ir.program import Instr, Loop, When, walk
from tile_eg.search.bounds import unhindered
from tile_eg.search.candidates import ranked
from tile_eg.search.planning import plan_schedule
from tile_eg.timeline.engine import least, run

LONG = """
kernel gemm[M=1536, N=1024, K=1024](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid (i, j) = (ceildiv(M, 128), ceildiv(N, 256))
  shared a: f16[128, 64], b: f16[64, 256]
  fragment c: f32[128, 256] = 0
  for k in pipelined(ceildiv(K, 64)) {
    a = A[i*128, k*64]
    b = B[k*64, j*256]
    c += a @ b
  }
  C[i*128, j*256] = c
}
"""


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_no_plan_of_a_schedule_is_faster(name: str, blocks: int) -> None:
    bare = lowering.plan(with_grid(best(name), grid(blocks), CHIP), CHIP)
    assert 0 < least(bare, CHIP) <= run(program(name, blocks), CHIP, record=False).microseconds


def test_flags_do_not_change_it() -> None:
    bare = lowering.plan(with_grid(best("gemm"), grid(3), CHIP), CHIP)
    assert least(program("gemm", 3), CHIP) == least(bare, CHIP)


@pytest.mark.slow
def test_it_is_near_where_the_loads_are_what_a_product_waits_for() -> None:
    schedule = extract(graph_of(LONG), CHIP, k=1).best
    (plain,) = ranked([(schedule, plan_schedule(schedule, CHIP))], rank_model("timeline", CHIP))
    turns = with_grid(schedule, grid(24), CHIP)
    assert 0.9 < unhindered(turns, CHIP, plain) / plan_schedule(turns, CHIP).timeline.microseconds <= 1


def test_what_a_guard_may_leave_out_does_not_count() -> None:
    bare = lowering.plan(with_grid(best("softmax"), grid(3), CHIP), CHIP)
    guarded = replace(bare, vector=(When(const(1), bare.vector),))
    assert least(guarded, CHIP) < least(bare, CHIP)


def test_every_wave_of_blocks_counts() -> None:
    schedule = extract(graph_of(LONG), CHIP, k=1).best
    bare = lowering.plan(schedule, CHIP)
    one = replace(bare, blocks=CHIP.cube_cores)
    assert bare.blocks == 2 * one.blocks and 1.3 * least(one, CHIP) < least(bare, CHIP)
    assert least(bare, CHIP) <= plan_schedule(schedule, CHIP).timeline.microseconds


def test_trips_that_a_skew_surely_lets_through_count() -> None:
    trips = 64
    bare = lowering.plan(with_grid(best("softmax"), grid(3), CHIP), CHIP)
    work = tuple(n for n in walk(bare.vector) if isinstance(n, Instr) and n.pipe == "V")[:1]
    assert work
    guarded = [(When(both(less(1, var("j")), less(var("j"), trips - 2)), work),), work]
    times = [least(replace(bare, cube=(), vector=(Loop("j", trips, body),)), CHIP) for body in guarded]
    launch = least(replace(bare, cube=(), vector=()), CHIP)
    assert (times[0] - launch) / (times[1] - launch) == pytest.approx((trips - 4) / trips)
