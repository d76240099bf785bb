"""The tables made of a timeline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from timeline_programs import fused_program, gemm_program, stream_loop, vector_program

from tile_eg.chips import load_chip
from tile_eg.timeline.engine import run
from tile_eg.timeline.summary import handover_range, interval, level_table, pipe_table

CHIP = load_chip()


def test_pipes_come_busiest_first() -> None:
    rows = pipe_table(run(gemm_program(20, 2), CHIP))
    assert [row.busy_us for row in rows] == sorted((row.busy_us for row in rows), reverse=True)


def test_a_share_is_of_the_time_on_the_core() -> None:
    timeline = run(vector_program(*stream_loop(20, 2), blocks=60), CHIP)
    for row in pipe_table(timeline):
        assert row.share == pytest.approx(row.busy_us / timeline.core_us)


def test_a_level_is_read_by_the_paths_that_leave_it() -> None:
    timeline = run(gemm_program(20, 2), CHIP)
    levels = {row.level: row for row in level_table(timeline)}
    assert levels["L1"].read == timeline.bytes["L1->L0A"] + timeline.bytes["L1->L0B"]
    assert levels["L1"].written == timeline.bytes["GM->L1"]


def test_levels_that_nothing_touches_are_left_out() -> None:
    assert [row.level for row in level_table(run(vector_program(*stream_loop(4, 1)), CHIP))] == ["GM", "UB"]


def test_without_a_handover_there_is_no_range() -> None:
    assert handover_range(gemm_program(4, 1), CHIP) is None


def test_the_interval_holds_the_time_and_the_range_of_the_handover() -> None:
    program = fused_program(8, skewed=False)
    low, high = interval(program, CHIP)
    bounds = handover_range(program, CHIP)
    assert low <= run(program, CHIP).microseconds <= high
    assert bounds is not None
    assert low <= bounds[0] + 1e-9
    assert bounds[1] - 1e-9 <= high


def test_a_changed_chip_has_the_interval_of_its_handover_alone() -> None:
    changed = replace(CHIP, sync=replace(CHIP.sync, scalar_loop=0))
    assert len(set(interval(gemm_program(4, 1), changed))) == 1


def test_the_range_holds_the_time_that_is_reported() -> None:
    program = fused_program(8, skewed=False)
    bounds = handover_range(program, CHIP)
    assert bounds is not None
    assert bounds[0] < run(program, CHIP).microseconds < bounds[1]
