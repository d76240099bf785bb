"""Loads of the next tile that are issued during the work on this one: which, where, and that the numbers stay the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.emit.sync.check import races
from tile_eg.extract.next_tile import known_loads, next_loads, waits_for_places
from tile_eg.extract.schedule import Schedule
from tile_eg.ir.program import Instr, SetFlag, Tasks
from tile_eg.ops.types import Level
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning, plan_schedule
from tile_eg.search.prefetch import prefetched, with_own_places

NORM = """
kernel norm[M=65536, N=1024, BM=16](X: f16[M, N], W: f16[N]) -> Y: f16[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f16[BM, N], w: f16[N]
  fragment f: f32[BM, N], c: f32[BM]
  x = X[bx*BM, 0]
  w = W[0]
  f = x
  f -= rowsum(f)[:, None] * (1 / N)
  c = 1 / sqrt(rowsum(f * f) * (1 / N) + 0.00001)
  Y[bx*BM, 0] = f * c[:, None] * w[None, :]
}
"""
EDGES = """
kernel edges[M=500, R=501, N=1700, BM=8, BN=128](X: f32[R, N]) -> Y: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f32[BM, BN], b: f32[BM, BN]
  a = X[bx*BM, by*BN]
  b = X[bx*BM + 1, by*BN]
  Y[bx*BM, by*BN] = exp(a) + b * a
}
"""
OWN_OUTPUT = """
kernel own[M=2000, N=64, BM=16](X: f32[M, N]) -> (Y: f32[M, N], Z: f32[M, N]) {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N], y: f32[BM, N]
  x = X[bx*BM, 0]
  Y[bx*BM, 0] = x * 2
  y = Y[bx*BM, 0]
  Z[bx*BM, 0] = exp(y) + x
}
"""
EPILOGUE = """
kernel epilogue[M=1300, N=1100, K=64, BM=128, BN=128](A: f16[M, K], B: f16[K, N], R: f16[M, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, K], b: f16[K, BN], r: f16[BM, BN]
  a = A[bx*BM, 0]
  b = B[0, by*BN]
  r = R[bx*BM, by*BN]
  C[bx*BM, by*BN] = a @ b + r
}
"""
TAKEN = """
kernel taken[M=1000, N=256, BM=8](W: f16[M, N], idx: i32[M]) -> Y: f16[M, N] {
  grid bx = ceildiv(M, BM)
  shared t: i32[1], x: f16[BM, N]
  t = idx[bx*BM]
  x = W[t[0], 0]
  Y[bx*BM, 0] = exp(x)
}
"""
RMS = """
kernel rms[M=65536, N=1024, BM=16](X: f16[M, N], W: f16[N]) -> Y: f16[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f16[BM, N], w: f16[N]
  fragment f: f32[BM, N], r: f32[BM]
  x = X[bx*BM, 0]
  w = W[0]
  f = x
  r = 1 / sqrt(rowsum(f * f) * (1 / N) + 0.00001)
  Y[bx*BM, 0] = f * r[:, None] * w[None, :]
}
"""
SOFTMAX = """
kernel softmax[M=2048, N=512, BM=32](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N], m: f32[BM], l: f32[BM]
  x = X[bx*BM, 0]
  m = rowmax(x)
  x = exp(x - m[:, None])
  l = rowsum(x)
  Y[bx*BM, 0] = x / l[:, None]
}
"""
SMALL = {"M": 1701, "N": 128}


@cache
def compiled(text: str, *without: str, chip: str = "910B2", **sizes: int) -> Lowered:
    return lower(kernel(text, **sizes), chip, search=search_options(without=(*without, "blocks-together", "side-by-side")))


def able(low: Lowered) -> list:
    return [c.schedule for c in low.candidates if next_loads(c.schedule)]


@pytest.mark.slow
def test_a_tile_of_many_vector_instructions_is_faster_with_the_next_ones_loads_ahead() -> None:
    assert compiled(NORM).candidates[0].schedule.prefetched
    assert compiled(NORM).cost.microseconds < 0.95 * compiled(NORM, "prefetch-tile").cost.microseconds


@pytest.mark.slow
def test_the_schedule_says_so() -> None:
    assert "what the next tile loads is issued during the work on this one" in str(compiled(NORM).schedule)


def test_the_text_loads_the_first_tile_before_the_loop_and_the_next_one_where_there_is_one() -> None:
    before, _, loop = compiled(NORM).source.partition("for (int32_t task = 0")
    assert before.count("X_gm[") == 1
    assert loop[: loop.index("X_gm[")].rstrip().splitlines()[-2].strip().startswith("if (")


@pytest.mark.slow
def test_with_two_places_the_next_tile_s_load_waits_for_this_one_s_alone() -> None:
    low = compiled(SOFTMAX, "v-reduce-blocks")
    two = next(s for s in able(low) if all(s.storages[load.dst].slots == 2 for load in known_loads(s)))
    body = next(n for n in plan_schedule(prefetched(two), low.chip).program.vector if isinstance(n, Tasks)).body
    begun = [n for n in body if isinstance(n, SetFlag) and (n.src, n.dst) == ("V", "MTE2")]
    first = next(n for n in body if isinstance(n, Instr) and n.op.startswith("v"))
    assert begun and body.index(begun[0]) < body.index(first)


def test_why_not_the_alternative_tells_when_each_loads() -> None:
    assert "loads: for each tile as its work begins instead of" in str(compiled(NORM).explanation)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize(("text", "sizes"), [(NORM, SMALL), (EDGES, {}), (OWN_OUTPUT, {})], ids=["norm", "edges", "own"])
def test_the_numbers_are_the_same(text: str, sizes: dict[str, int], chip: str) -> None:
    low, k = compiled(text, "prefetch-tile", "past-l2", chip=chip, **sizes), kernel(text, **sizes)
    arrays = arrays_for(k)
    meant = meaning(k, arrays)
    assert able(low)
    apart = (with_own_places(s, low.chip) for s in able(low)[:2])
    for schedule in [*map(prefetched, able(low)[:3]), *(s for s in apart if s)]:
        ran = plan_schedule(schedule, low.chip).run(arrays)
        for name in meant:
            np.testing.assert_allclose(ran[name].astype(float), meant[name].astype(float), rtol=2e-3, atol=2e-3)
        assert not ran.findings


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("rows", [48 * 16, 49 * 16, 3 * 48 * 16, 2 * 48 * 16 + 1])
def test_blocks_may_have_any_number_of_tiles(rows: int) -> None:
    low = compiled(NORM, "prefetch-tile", M=rows, N=128)
    assert all(not races(plan_schedule(prefetched(s), low.chip).program) for s in able(low))


@pytest.mark.slow
def test_what_a_kernel_wrote_before_is_not_loaded_ahead() -> None:
    loads = [step.srcs for steps in next_loads(able(compiled(OWN_OUTPUT))[0]).values() for step in steps]
    assert loads and not any("Y" in srcs for srcs in loads)


@pytest.mark.slow
def test_what_begins_where_the_scalar_unit_reads_is_not_loaded_ahead() -> None:
    low = compiled(TAKEN)
    assert any(c.schedule.persistent for c in low.candidates) and not able(low)


@pytest.mark.slow
def test_a_kernel_of_both_cores_has_none() -> None:
    low = compiled(EPILOGUE)
    assert any(c.schedule.persistent for c in low.candidates) and not able(low)


def places(schedule: Schedule, storage: int) -> list[range]:
    """The bytes of a storage's slots."""
    held = schedule.storages[storage]
    return [range(at, at + held.slot_bytes) for at in schedule.addresses[storage]]


@pytest.mark.slow
def test_a_load_may_have_a_place_of_its_own_for_which_others_give_up_slots() -> None:
    """A tile of 16 x 1024 in UB as halves and as floats, its squares, and two buffers of the result do not fit UB together."""
    best = compiled(RMS).candidates[0].schedule
    (load,) = (step for steps in next_loads(best).values() for step in steps)
    others = [s for s in best.storages if s != load.dst and s in best.addresses]
    assert best.own_places and len(best.addresses[load.dst]) == 1
    assert not any(set(p) & set(q) for p in places(best, load.dst) for s in others for q in places(best, s))
    plain = (c.schedule for c in compiled(RMS).candidates if c.schedule.persistent and not c.schedule.finished)
    assert any(s.grid is best.grid and not next_loads(s) for s in plain)


@pytest.mark.slow
def test_without_room_there_is_no_place_of_its_own() -> None:
    low = compiled(RMS)
    small = replace(low.chip, memories=low.chip.memories | {Level.UB: replace(low.chip.memories[Level.UB], bytes=128 << 10)})
    schedule = next(c.schedule for c in low.candidates if c.schedule.own_places)
    apart = with_own_places(replace(schedule, prefetched=False, own_places=False), small)
    assert apart is None or not next_loads(apart)


@pytest.mark.slow
def test_tiles_that_share_no_place_wait_for_none() -> None:
    low = compiled(NORM, M=65536, N=128)
    assert not any(waits_for_places(s) for s in able(low))


@pytest.mark.slow
def test_where_every_tile_has_a_block_there_is_nothing_to_do() -> None:
    tried = [t.why for t in compiled(NORM, M=64, N=128).tried if t.offer.move.name == "prefetch-tile"]
    assert tried == ["there is nothing for it to do"]


@pytest.mark.slow
def test_flags_that_run_out_take_buffers_of_the_copy_alone() -> None:
    schedule = able(compiled(NORM, "prefetch-tile", **SMALL))[0]
    copy = prefetched(schedule)
    for storage in copy.storages.values():
        storage.slots += 1
    assert all(a.slots + 1 == copy.storages[sid].slots for sid, a in schedule.storages.items())
