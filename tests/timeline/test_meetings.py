"""Where all cores of a launch meet: the slowest one decides when they go on, and the meeting takes its handovers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.timeline.timeline_programs import load, set_, store, vector_program, vexp, wait
from tile_eg.chips import load_chip
from tile_eg.ir.index import BLOCK, const, less, var
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import SYNC_ALL_HANDOVERS
from tile_eg.ir.program import Gm, Program, SyncAll, When
from tile_eg.ops.types import F32
from tile_eg.timeline.engine import least, run
from tile_eg.timeline.summary import handover_range

CHIP = load_chip("910B2")
WORK = (load(), set_("MTE2", "V"), wait("MTE2", "V"), vexp(), set_("V", "MTE3"), wait("V", "MTE3"), store())


def mixed(*vector, blocks: int = 1) -> Program:
    meetings = tuple(n for n in vector if isinstance(n, SyncAll))
    return replace(vector_program(*vector, blocks=blocks, halves=True), kernel_type="MIX_AIC_1_2", cube=meetings)


def test_a_meeting_takes_three_handovers():
    once, twice = run(mixed(*WORK), CHIP), run(mixed(*WORK, SyncAll(), *WORK), CHIP)
    meeting = SYNC_ALL_HANDOVERS * CHIP.sync.cross_latency
    assert twice.cycles == pytest.approx(2 * once.cycles + meeting)


def test_what_a_launch_takes_at_the_least_counts_its_meetings():
    apart, met = mixed(*WORK), mixed(*WORK, SyncAll(), *WORK)
    assert least(apart, CHIP) < least(met, CHIP) <= run(met, CHIP).microseconds
    launch = run(met, CHIP).launch_us
    meeting = CHIP.microseconds(SYNC_ALL_HANDOVERS * CHIP.sync.cross_latency)
    assert least(met, CHIP) == pytest.approx(launch + 2 * (least(apart, CHIP) - launch) + meeting)


def test_the_slowest_block_of_each_phase_counts():
    long = tuple(vexp() for _ in range(50))
    first = When(less(var(BLOCK), 1), long)
    second = When(less(const(0), var(BLOCK)), long)
    both = run(mixed(first, SyncAll(), second, blocks=2), CHIP).cycles
    assert both > 2 * run(mixed(*long, blocks=2), CHIP).cycles


def test_what_all_blocks_share_is_read_out_of_l2():
    shared = (Tensor("s", F32, (1 << 16,), True),)
    written = replace(store(), dst=Gm("s", const(0), 64))
    read = replace(load(), srcs=(Gm("s", const(0), 64),))
    far = mixed(written, SyncAll(), load())
    near = replace(mixed(written, SyncAll(), read), shared=shared)
    assert run(near, CHIP).busy["AIV", "MTE2"] < run(replace(far, shared=shared), CHIP).busy["AIV", "MTE2"]


def test_what_is_handed_over_in_l2_does_not_go_to_hbm():
    written = replace(store(), dst=Gm("s", const(0), 64))
    read = replace(load(), srcs=(Gm("s", const(0), 64),))
    near = replace(mixed(written, SyncAll(), read), shared=(Tensor("s", F32, (1 << 16,), True),))
    assert run(near, CHIP).hbm_cycles == 0
    far = replace(near, shared=(Tensor("s", F32, (1 << 26,), True),))
    assert run(far, CHIP).hbm_cycles > 0


def test_spans_of_the_second_phase_come_after_the_meeting():
    spans = run(mixed(*WORK, SyncAll(), *WORK), CHIP, exact=True).spans
    ends, starts = [s.complete for s in spans[: len(spans) // 2]], [s.start for s in spans[len(spans) // 2 :]]
    assert min(starts) > max(ends)


def test_a_launch_with_a_meeting_is_told_with_the_range_of_the_latency():
    assert handover_range(mixed(*WORK, SyncAll(), *WORK), CHIP) is not None
