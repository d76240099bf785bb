"""Banks of UB and copies that leave L2 out, as they ran: the scenarios of the vendor's own samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks.validate.vector import add
from tile_eg.chips import load_chip
from tile_eg.emit.ascend_c import kernel_text
from tile_eg.emit.packed_operand import copy_in_strips
from tile_eg.ir.index import const
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import write_cycles
from tile_eg.ir.program import Buffer, Instr, Tile
from tile_eg.ops.types import F16, F32, Level
from tile_eg.simulator.run import Simulation, simulate
from tile_eg.timeline.banks import Meetings, meetings
from tile_eg.timeline.engine import run
from tile_eg.timeline.replay.launches import timed_launches
from tile_eg.timeline.reuse import hbm_seconds
from tile_eg.transforms.packed_operand import Matrices

CHIP = load_chip()

ADDS = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void adds(GM_ADDR whichAddress, GM_ADDR yAddress, GM_ADDR workspace) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GlobalTensor<int32_t> which;
    which.SetGlobalBuffer((__gm__ int32_t*)whichAddress);
    GlobalTensor<float> y;
    y.SetGlobalBuffer((__gm__ float*)yAddress);
    y.SetL2CacheHint(which.GetValue(3) ? CacheMode::CACHE_MODE_DISABLE : CacheMode::CACHE_MODE_NORMAL);
    TPipe pipe;
    TBuf<TPosition::VECCALC> memory;
    pipe.InitBuffer(memory, 170000);
    LocalTensor<float> first = memory.GetWithOffset<float>(4096, which.GetValue(0));
    LocalTensor<float> second = memory.GetWithOffset<float>(4096, which.GetValue(1));
    LocalTensor<float> sum = memory.GetWithOffset<float>(4096, which.GetValue(2));
    Duplicate(first, 1.0f, 4096);
    Duplicate(second, 2.0f, 4096);
    PipeBarrier<PIPE_V>();
    for (int i = 0; i < 100; ++i) { Add(sum, first, second, 4096); PipeBarrier<PIPE_V>(); }
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(y, sum, 4096);
}
"""


@cache
def ran(*which: int) -> Simulation:
    done = simulate(
        ADDS, "adds", [np.array([*which, 0, 0, 0, 0, 0][:8], np.int32), np.zeros(4096, np.float32)], kernel_type="AIV_ONLY",
        launch=1, workspace=0, outputs=[1], trace=True,
    )  # fmt: skip
    assert done.ok, done.findings
    return done


def each_add(*at: int) -> float:
    """Cycles on its pipe of an addition of 64 repeats, back to back."""
    busy = timed_launches(ran(*at, 0).trace, CHIP)[0].timeline.busy["AIV", "V"]
    return (busy - 2 * 64) / 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "repeat"),
    [
        ((0, 0x10100, 0x20000), 1.0), ((0, 0x4000, 0x10000), 2.0), ((0, 0x10000, 0x14100), 2.0),
        ((0, 0x10100, 0x4000), 1.0), ((0, 0x10100, 0x4020), 1.8), ((0, 0x10100, 0x10100), 1.0),
    ],
    ids=["none", "one bank read twice", "one group read twice", "written later", "in the way", "in place"],
)  # fmt: skip
def test_an_addition_takes_what_its_addresses_ask_for(at: tuple[int, int, int], repeat: float) -> None:
    assert each_add(*at) == pytest.approx(64 * repeat, rel=0.01)


def test_a_program_s_addresses_ask_for_the_same() -> None:
    p = add(1 << 16, 4096, 1, conflict=False)
    apart, in_the_way = (
        replace(p, buffers=tuple(replace(b, addresses=(at[b.name],)) for b in p.buffers))
        for at in ({"x": 0, "y": 0x10100, "z": 0x4000}, {"x": 0, "y": 0x10100, "z": 0x4020})
    )
    busy = [run(q, CHIP).busy["AIV", "V"] for q in (apart, in_the_way)]
    assert busy[1] == pytest.approx(1.8 * busy[0], rel=0.01)


@pytest.mark.parametrize(("apart", "cycles"), [(1, 1), (16, 8), (144, 8), (145, 1), (8, 4), (4, 2), (2, 1)])
def test_blocks_in_one_group_are_written_one_after_the_other(apart: int, cycles: int) -> None:
    assert write_cycles(apart, CHIP.vector.bank_groups_bytes) == cycles


STRIPS = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void strips(GM_ADDR whichAddress, GM_ADDR yAddress, GM_ADDR workspace) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GlobalTensor<int32_t> which;
    which.SetGlobalBuffer((__gm__ int32_t*)whichAddress);
    GlobalTensor<half> y;
    y.SetGlobalBuffer((__gm__ half*)yAddress);
    TPipe pipe;
    TBuf<TPosition::VECCALC> memory;
    pipe.InitBuffer(memory, 170000);
    LocalTensor<half> wide = memory.GetWithOffset<half>(18432, 0);
    LocalTensor<half> taken = memory.GetWithOffset<half>(40000, 65536);
    Duplicate(wide, (half)1.0f, 18432);
    PipeBarrier<PIPE_V>();
    Copy(taken, wide, 128, 144, CopyRepeatParams(which.GetValue(0), 1, 1, 8));
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(y, taken, 16);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("apart", "cycles"), [(144, 8), (145, 1)])
def test_a_copy_takes_what_its_blocks_ask_for(apart: int, cycles: int) -> None:
    inputs = [np.array([apart] + [0] * 7, np.int32), np.zeros(16, np.float16)]
    done = simulate(STRIPS, "strips", inputs, kernel_type="AIV_ONLY", launch=1, workspace=0, outputs=[1], trace=True)
    spans = timed_launches(done.trace, CHIP)[0].timeline.spans
    assert next(s.end - s.start for s in spans if s.instr.op == "Copy") == pytest.approx(144 * cycles)


def test_a_packed_operand_s_strips_lie_in_different_groups() -> None:
    source, target = Tensor("B", F16, (512, 512), False), Tensor("strips", F16, (32, 8192), True)
    packed = copy_in_strips(source, target, Matrices(1, 512, 512), 24, CHIP)
    strips = packed.buffers[1]
    assert write_cycles(strips.pitch * 2 // 32, CHIP.vector.bank_groups_bytes) == 1


@pytest.mark.slow
def test_a_hint_leaves_l2_out() -> None:
    cached, past = (next(r for r in ran(0, 0x10100, 0x20000, hint).trace if r.path == "UB->GM") for hint in (0, 1))
    assert (cached.past_l2, past.past_l2) == (False, True)


SIZE = 1 << 26
WRITTEN = 2 * SIZE
PUSHED = WRITTEN - CHIP.l2_written / 3  # a third of what L2 holds is written


@pytest.mark.parametrize(("bypass", "pushed"), [(False, PUSHED), (True, 0)])
def test_what_is_read_past_l2_leaves_its_room_to_what_is_written(bypass: bool, pushed: float) -> None:
    cycles = run(add(SIZE, 16384, 48, 2, bypass=bypass), CHIP).hbm_cycles
    assert cycles == pytest.approx(hbm_seconds(CHIP, 4 * SIZE, pushed) * CHIP.clock_mhz * 1e6, rel=0.01)


def test_what_is_written_past_l2_goes_to_hbm() -> None:
    p = add(SIZE, 16384, 48, 2)
    past = replace(p, tensors=tuple(replace(t, past_l2=True) for t in p.tensors))
    cycles = run(past, CHIP).hbm_cycles
    assert cycles == pytest.approx(hbm_seconds(CHIP, 4 * SIZE, WRITTEN) * CHIP.clock_mhz * 1e6)


def test_what_leaves_l2_out_is_not_found_there() -> None:
    p = add(1 << 20, 4096, 48)
    again = replace(p, vector=(*p.vector, *p.vector))
    past = replace(again, tensors=tuple(replace(t, past_l2=True) for t in again.tensors))
    assert run(past, CHIP).hbm_cycles > 2 * run(again, CHIP).hbm_cycles


def test_a_tensor_that_leaves_l2_out_says_so_in_the_text() -> None:
    assert kernel_text(add(1 << 20, 4096, 48, bypass=True)).count("CACHE_MODE_DISABLE") == 2


def met(op: str, addresses: Sequence[int], form: str = "flat", rows: int = 16, cols: int = 64, **more: Any) -> Meetings | None:
    """What an instruction meets whose result and sources lie at these addresses, in rows of 64 floats."""
    buffers = {f"b{n}": Buffer(f"b{n}", Level.UB, F32, 16, 64, 64, "nd", 1, (at,)) for n, at in enumerate(addresses)}
    to, *sources = (Tile(name) for name in buffers)
    return meetings(Instr(op, to, tuple(sources), const(rows), const(cols), form=form, **more), buffers, rows, cols)


def test_a_block_a_row_is_in_the_way_of_all_rows_but_those_that_share_its_bank() -> None:
    assert met("vadd_rows", (0, 0, 16384), "rows") == Meetings(0.5, 7 / 8)


def test_rows_that_both_move_on_alike_meet_as_the_first_ones_do() -> None:
    assert met("vadd", (0, 1 << 16, (1 << 16) + 256), "rows") == Meetings(0.0, 0.0)
    assert met("vadd", (0, 1 << 16, 1 << 17), "rows") == Meetings(1.0, 0.0)


def test_of_a_choice_only_two_tiles_that_are_read_together_meet() -> None:
    at = 1 << 16
    assert met("vchooses_lt", (0, at, at, at + 256)) == Meetings(0.0)
    assert met("vchooses_lt", (0, at, at + 512, at)) == Meetings(0.5)
    assert met("vchoose_lt", (0, at, at, at, at)) == Meetings(1.0)
