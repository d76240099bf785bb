"""The timing engine on small programs: exact cycle arithmetic, overlap, blocking, waves, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timeline_programs import K, fused_program, gemm_program, load, set_, store, stream_loop, vector_program, vexp, wait

from tile_eg.chips import Chip, load_chip
from tile_eg.ir.index import BLOCK, const, less, var
from tile_eg.ir.program import CrossSet, CrossWait, Instr, Loop, PipeBarrier, Program, SetFlag, Tasks, When
from tile_eg.timeline.block import run_block
from tile_eg.timeline.engine import StreamError, Timeline, run
from tile_eg.timeline.guards import loads
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.work import Work
from tile_eg.timeline.works import Pricer

CHIP = load_chip("910B2")
EXP = 128.0
EXP_FILL = 31.0
LOAD = cycles(CHIP, Work("gm_to_ub", 64, 64, miss=1.0))
LOAD_DONE = cycles(CHIP, Work("gm_to_ub", 64, 64, miss=1.0), cold=True)
STORE_DONE = cycles(CHIP, Work("ub_to_gm", 64, 64), cold=True)


def block(program: Program, chip: Chip = CHIP) -> float:
    return run(program, chip).block_cycles


def start_of(timeline: Timeline, op: str, nth: int = 0) -> float:
    return [s.start for s in timeline.spans if s.instr.op == op][nth]


def with_latency(latency: float) -> Chip:
    return replace(CHIP, sync=replace(CHIP.sync, cross_latency=latency))


def with_startup(cycles: float) -> Chip:
    slow = {name: replace(path, startup=cycles, overlaps=False) for name, path in CHIP.paths.items()}
    return replace(CHIP, paths=slow)


# ---- one pipe ---------------------------------------------------------------------------------------------------------------


def test_one_instruction_takes_its_issue_its_time_and_its_fill() -> None:
    assert block(vector_program(vexp())) == 1 + EXP + EXP_FILL


def test_instructions_of_a_pipe_follow_without_the_fill_between() -> None:
    assert block(vector_program(vexp(), vexp("c"))) == 1 + 2 * EXP + EXP_FILL


def test_a_barrier_lets_the_fill_pass() -> None:
    assert block(vector_program(vexp(), PipeBarrier("V"), vexp("c", "b"))) == 1 + 2 * (EXP + EXP_FILL)


def test_a_barrier_holds_its_own_pipe_only() -> None:
    timeline = run(vector_program(vexp(), PipeBarrier("V"), load("c")), CHIP)
    assert start_of(timeline, "gm_to_ub") == 3


def test_a_barrier_on_all_pipes_holds_the_scalar_unit() -> None:
    timeline = run(vector_program(vexp(), PipeBarrier("ALL"), load("c")), CHIP)
    assert start_of(timeline, "gm_to_ub") == 1 + EXP + EXP_FILL + 1


def test_independent_pipes_overlap() -> None:
    assert block(vector_program(vexp("c", "c"), load())) < EXP + LOAD_DONE


# ---- flags ------------------------------------------------------------------------------------------------------------------


def test_a_flag_waits_for_the_completion_of_what_was_before_it() -> None:
    timeline = run(vector_program(load(), set_("MTE2", "V"), wait("MTE2", "V"), vexp()), CHIP)
    assert start_of(timeline, "vexp") == pytest.approx(1 + LOAD_DONE + 2 * CHIP.sync.flag)


def test_a_flag_does_not_hold_what_comes_later_on_its_own_pipe() -> None:
    timeline = run(vector_program(load(), set_("MTE2", "V"), wait("MTE2", "V"), vexp(), load("c")), CHIP)
    assert start_of(timeline, "gm_to_ub", 1) == pytest.approx(1 + LOAD)


def test_a_wait_may_be_issued_before_its_set() -> None:
    timeline = run(vector_program(wait("MTE2", "V"), vexp(), load(), set_("MTE2", "V")), CHIP)
    assert start_of(timeline, "vexp") > LOAD_DONE


def test_a_scalar_wait_stops_issue() -> None:
    program = vector_program(vexp(), set_("V", "S"), wait("V", "S"), load("c"))
    assert start_of(run(program, CHIP), "gm_to_ub") > EXP + EXP_FILL


def test_a_full_queue_stops_the_scalar_unit() -> None:
    stuck = [wait("MTE2", "V"), *(vexp("c", "c") for _ in range(CHIP.limits.queue_depth))]
    with pytest.raises(StreamError, match="V waits"):
        run(vector_program(*stuck, load(), set_("MTE2", "V")), CHIP)


def test_a_queue_with_room_lets_the_scalar_unit_pass() -> None:
    free = [wait("MTE2", "V"), *(vexp("c", "c") for _ in range(CHIP.limits.queue_depth - 2))]
    run(vector_program(*free, load(), set_("MTE2", "V")), CHIP)


def test_an_instruction_that_is_written_row_by_row_fills_the_queue_before_a_load_behind_it() -> None:
    rows = replace(vexp(), form="rows", cols=const(1024))
    timeline = run(vector_program(replace(rows, rows=const(8)), load("c")), CHIP)
    assert start_of(timeline, "gm_to_ub") == 1 + 8
    timeline = run(vector_program(replace(rows, rows=const(512), cols=const(4096)), load("c")), CHIP)
    each = timeline.spans[0].end - timeline.spans[0].start
    assert start_of(timeline, "gm_to_ub") > each / 4


def test_a_ring_of_two_overlaps_loads_and_work() -> None:
    assert block(vector_program(*stream_loop(16, 2))) < 0.75 * block(vector_program(*stream_loop(16, 1)))


def test_with_a_ring_the_busiest_pipe_sets_the_pace() -> None:
    per_trip = (block(vector_program(*stream_loop(40, 2))) - block(vector_program(*stream_loop(20, 2)))) / 20
    assert per_trip == pytest.approx(LOAD + CHIP.sync.flag, rel=0.02)


def test_without_a_ring_every_latency_shows() -> None:
    per_trip = (block(vector_program(*stream_loop(40, 1))) - block(vector_program(*stream_loop(20, 1)))) / 20
    assert per_trip > LOAD_DONE + EXP + EXP_FILL


def test_gemm_with_a_ring_is_bound_by_its_busiest_pipe() -> None:
    timeline = run(gemm_program(60, 3), CHIP)
    assert timeline.bound == "AIC.MTE2"
    assert timeline.share("AIC", "MTE2") > 0.9


def test_gemm_without_a_ring_waits_between_its_loads() -> None:
    assert run(gemm_program(60, 1), CHIP).share("AIC", "MTE2") < 0.8


def test_small_instructions_that_wait_for_each_other_are_bound_by_latency() -> None:
    assert run(vector_program(*stream_loop(20, 1)), with_startup(400)).bound == "latency"


# ---- two cores --------------------------------------------------------------------------------------------------------------


def handover() -> Program:
    """The cube core hands one tile over; the vector core waits for it."""
    base = fused_program(1, skewed=False)
    product, second = base.cube[0].body[:7], base.vector[0].body[:2]  # type: ignore[union-attr]
    return replace(base, cube=(*product, CrossSet("FIX", 2)), vector=second)


def test_a_handover_takes_the_latency_between_cores() -> None:
    timeline = run(handover(), CHIP)
    done = next(s.complete for s in timeline.spans if s.instr.op == "fixpipe")
    assert start_of(timeline, "gm_to_ub") == pytest.approx(done + CHIP.sync.cross_latency + 1)


def test_a_cross_wait_stops_the_issue_to_every_pipe() -> None:
    program = replace(handover(), vector=(CrossWait(0), vexp("u", "u")))
    assert start_of(run(program, CHIP), "vexp") > CHIP.sync.cross_latency


def test_what_was_issued_before_a_cross_wait_goes_on() -> None:
    program = replace(handover(), vector=(vexp("u", "u"), CrossWait(0)))
    assert start_of(run(program, CHIP), "vexp") == 1


def test_skew_hides_the_handover() -> None:
    assert block(fused_program(16, skewed=True)) < 0.65 * block(fused_program(16, skewed=False))


def test_unskewed_each_trip_pays_both_handovers() -> None:
    slow, fast = (block(fused_program(16, skewed=False), with_latency(n)) for n in (800, 500))
    assert slow - fast == pytest.approx(2 * 300 * 16)


def test_skewed_a_longer_latency_costs_little_while_there_is_work() -> None:
    slow, fast = (block(fused_program(16, skewed=True), with_latency(n)) for n in (300, 250))
    assert slow - fast < 0.2 * (2 * 50 * 16)


def test_vector_cores_of_a_block_move_twice_what_one_moves() -> None:
    assert run(fused_program(4, skewed=False), CHIP).bytes["WS->UB"] == 4 * 2 * 64 * 128 * 4


# ---- what it refuses --------------------------------------------------------------------------------------------------------


def test_a_wait_without_a_set_is_named() -> None:
    with pytest.raises(StreamError, match=r"deadlock: AIV V waits at WaitFlag<MTE2_V>\(3\)"):
        run(vector_program(wait("MTE2", "V", 3), vexp()), CHIP)


def test_a_deadlock_in_a_loop_names_the_trip() -> None:
    with pytest.raises(StreamError, match=r"WaitFlag<V_MTE2>\(0\) \(k=1\)"):
        run(vector_program(set_("V", "MTE2"), Loop("k", 3, (wait("V", "MTE2"), load()))), CHIP)


def test_two_cores_that_wait_for_each_other_are_both_named() -> None:
    program = replace(handover(), cube=(CrossWait(1), CrossSet("FIX", 0)), vector=(CrossWait(0), CrossSet("V", 1)))
    with pytest.raises(StreamError, match=r"AIC stops at CrossWait\(1\); AIV stops at CrossWait\(0\)"):
        run(program, CHIP)


def test_a_pipe_that_the_core_lacks_is_named() -> None:
    with pytest.raises(StreamError, match="AIV has no pipe M"):
        run(vector_program(SetFlag("M", "V", const(0))), CHIP)


# ---- loops and guards -------------------------------------------------------------------------------------------------------


def test_a_guard_decides_trip_by_trip() -> None:
    timeline = run(vector_program(Loop("k", 5, (When(less(K, 2), (vexp(),)),))), CHIP)
    assert len(timeline.spans) == 2


def test_an_instruction_may_carry_its_own_guard() -> None:
    timeline = run(vector_program(Loop("k", 5, (replace(vexp(), when=less(const(3), K)),))), CHIP)
    assert len(timeline.spans) == 1


def test_the_last_block_counts_where_a_guard_depends_on_the_block() -> None:
    last = When(less(const(2), var(BLOCK)), (vexp(),))
    assert block(vector_program(last, blocks=4)) == 1 + EXP + EXP_FILL


def test_sizes_are_evaluated_at_each_trip() -> None:
    work = Instr("vexp", vexp().dst, vexp().srcs, (K + 1) * 16, const(64))
    timeline = run(vector_program(Loop("k", 3, (work,))), CHIP)
    assert [s.end - s.start for s in timeline.spans] == [32, 64, 96]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(trips=st.integers(600, 1500), slots=st.integers(1, 4))
def test_extrapolation_agrees_with_running_every_trip(trips: int, slots: int) -> None:
    program = gemm_program(trips, slots)
    quick, exact = run(program, CHIP), run(program, CHIP, exact=True)
    assert quick.extrapolated
    assert not exact.extrapolated
    assert quick.cycles == pytest.approx(exact.cycles, rel=1e-6)
    assert quick.bytes == pytest.approx(exact.bytes)


def test_extrapolation_holds_across_two_cores() -> None:
    program = fused_program(700, skewed=True)
    assert run(program, CHIP).cycles == pytest.approx(run(program, CHIP, exact=True).cycles, rel=1e-6)


@pytest.mark.slow
def test_nested_loops_extrapolate_in_both() -> None:
    inner = stream_loop(100, 2)
    program = vector_program(*inner[:4], Loop("o", 90, inner[4:5]), *inner[5:])
    assert run(program, CHIP).cycles == pytest.approx(run(program, CHIP, exact=True).cycles, rel=1e-3)


# ---- the whole launch -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("blocks", "halves", "waves"), [(48, False, 1), (49, False, 2), (24, True, 1), (25, True, 2)])
def test_vector_blocks_come_in_waves_over_48_cores(blocks: int, halves: bool, waves: int) -> None:
    assert run(vector_program(vexp(), blocks=blocks, halves=halves), CHIP).waves == waves


@pytest.mark.parametrize(("blocks", "waves"), [(24, 1), (25, 2), (72, 3)])
def test_cube_blocks_come_in_waves_over_24_cores(blocks: int, waves: int) -> None:
    timeline = run(gemm_program(64, 2, blocks), CHIP)
    alone = run(gemm_program(64, 2, 1), CHIP)
    assert timeline.waves == waves
    assert timeline.cycles > waves * alone.cycles


def test_a_last_wave_of_few_blocks_is_quicker() -> None:
    full, more = (run(gemm_program(64, 2, blocks), CHIP) for blocks in (24, 25))
    assert full.cycles < more.cycles < 2 * full.cycles


def test_the_launch_is_part_of_the_time() -> None:
    timeline = run(vector_program(vexp()), CHIP)
    launch = CHIP.launch
    assert timeline.launch_us == launch.base_us + launch.core_us + launch.prologue_us
    assert timeline.microseconds == pytest.approx(timeline.launch_us + timeline.cycles / 1800)
    assert timeline.core_us == pytest.approx(timeline.cycles / 1800)


def test_a_launch_takes_longer_the_more_cores_it_starts() -> None:
    one, all_, more = (run(vector_program(vexp(), blocks=n), CHIP).launch_us for n in (1, 48, 480))
    assert all_ - one == pytest.approx(47 * CHIP.launch.core_us)
    assert more == all_


def test_a_mixed_launch_takes_longer() -> None:
    assert run(fused_program(1, skewed=False), CHIP).launch_us - run(vector_program(vexp()), CHIP).launch_us == CHIP.launch.mix_us


def test_streaming_on_all_cores_is_bound_by_hbm() -> None:
    program = vector_program(*stream_loop(100, 2), blocks=48, size=48 * 100 * 4096)
    timeline = run(program, CHIP)
    assert timeline.bound == "HBM"
    assert timeline.core_us == pytest.approx(48 * 100 * 16384 / CHIP.shared.hbm_read * 1e6, rel=0.1)


def test_what_is_done_behind_the_last_load_comes_after_what_hbm_brings() -> None:
    program = vector_program(*stream_loop(100, 2), blocks=48, size=48 * 100 * 4096)
    timeline = run(program, CHIP)
    loaded = max(s.complete for s in timeline.spans if s.pipe == "MTE2")
    behind = timeline.block_cycles - loaded
    assert behind > 0
    assert timeline.cycles == pytest.approx(max(timeline.block_cycles, timeline.hbm_cycles + behind))
    assert timeline.cycles > timeline.hbm_cycles


def test_a_tensor_is_brought_from_hbm_once() -> None:
    timeline = run(vector_program(*stream_loop(100, 2), blocks=48, size=4096), CHIP)
    assert timeline.hbm_cycles == pytest.approx(16384 / CHIP.shared.hbm_read * 1.8e9)


def test_bytes_are_those_of_the_whole_launch() -> None:
    timeline = run(vector_program(*stream_loop(10, 2), blocks=3), CHIP)
    assert timeline.bytes == {"GM->UB": 3 * 10 * 16384, "UB->GM": 3 * 10 * 16384}


def test_stores_wait_for_completion_at_the_end() -> None:
    assert block(vector_program(store())) == pytest.approx(1 + STORE_DONE)


@pytest.mark.slow
def test_a_slower_clock_takes_longer() -> None:
    program = gemm_program(20, 2)
    assert run(program, load_chip("910B4")).core_us > run(program, load_chip("910B1")).core_us


# ---- trips that the block decides -------------------------------------------------------------------------------------------


def counted(blocks: int) -> Program:
    """Block b computes b + 1 times."""
    return vector_program(Loop("k", blocks, (vexp(), PipeBarrier("V")), until=var(BLOCK) + 1), blocks=blocks)


def test_the_block_with_the_most_trips_is_timed() -> None:
    whole = vector_program(Loop("k", 12, (vexp(), PipeBarrier("V"))), blocks=12)
    assert block(counted(12)) == block(whole)


def test_a_block_without_a_trip_takes_no_time() -> None:
    none = vector_program(Loop("k", 8, (vexp(),), until=var(BLOCK)), vexp(), blocks=1)
    assert block(none) == block(vector_program(vexp()))


def test_waves_behind_the_first_take_the_mean_of_all_blocks() -> None:
    even = replace(counted(480), vector=(Loop("k", 480, (vexp(), PipeBarrier("V"))),))
    uneven = run(counted(480), CHIP)
    assert uneven.waves == 10 and uneven.cycles / run(even, CHIP).cycles == pytest.approx(0.1 + 0.9 * 0.5, rel=0.01)


def test_of_blocks_that_take_tiles_in_turn_the_one_with_the_most_rows_is_timed() -> None:
    low = less((var("task") * 4 + var(BLOCK)) % 2, 1)  # every other tile: all of block 0, none of block 1
    tiles = Tasks("task", 3, (replace(vexp(), rows=64 - low * 48),), until=(13 - var(BLOCK)) // 4)
    assert loads(vector_program(tiles, blocks=4), 48).heavy == (0, 1)


def test_a_block_whose_rows_fill_no_repeats_is_timed_beside_one_of_whole_tiles() -> None:
    tail = replace(vexp(), rows=64 - var(BLOCK) * 27, cols=const(32))  # 64 rows of 128 bytes, and 37
    assert loads(vector_program(tail, blocks=2), 48).heavy == (0, 1)
    assert loads(vector_program(replace(tail, rows=64 - var(BLOCK) * 26), blocks=2), 48).heavy == (0,)


def test_blocks_that_stand_for_all_keep_no_time_with_a_grid() -> None:
    rows = 128  # every 64th of 64 x 128 blocks would be one of two rows
    uneven = vector_program(Loop("k", rows, (vexp(), PipeBarrier("V")), until=var(BLOCK) % rows + 1), blocks=64 * rows)
    assert loads(uneven, 48).share == pytest.approx((rows + 1) / 2 / rows, rel=0.02)


@pytest.mark.long
def test_cores_behind_the_first_wave_share_memory_with_all_others() -> None:
    body = (load(), set_("MTE2", "V"), wait("MTE2", "V"), vexp(), set_("V", "MTE2"), wait("V", "MTE2"))
    uneven = vector_program(Loop("k", 96, body, until=var(BLOCK) % 96 + 1), blocks=96 * 40)
    at_once = 48
    pricer = Pricer(uneven, CHIP, at_once, {})
    cores = [0.0] * at_once
    for number in range(uneven.blocks):  # a core that is done takes the next block
        heappush(cores, heappop(cores) + run_block(uneven, pricer, number).cycles)
    assert run(uneven, CHIP).cycles == pytest.approx(max(cores), rel=0.06)


def test_a_task_counts_its_own_trips() -> None:
    inner = Loop("k", 8, (vexp(), PipeBarrier("V")), until=var("task") % 2 * 6 + 2)
    tasks = vector_program(Tasks("task", 4, (inner,), until=const(4)))
    flat = vector_program(*(Loop("k", n, (vexp(), PipeBarrier("V"))) for n in (2, 8, 2, 8)))
    exact = run(tasks, CHIP, exact=True).block_cycles
    assert 0 < exact - run(flat, CHIP, exact=True).block_cycles <= 4 * CHIP.sync.scalar_loop
    assert block(tasks) == pytest.approx(exact)
