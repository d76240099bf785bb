"""The memory map says what lies where, and how full each level is."""

from __future__ import annotations

from tile_eg.chips import load_chip
from tile_eg.ir.program import Buffer, Program
from tile_eg.ops.types import F16, F32, Level
from tile_eg.report.memory import MemoryMap

A = Buffer("a", Level.L1, F16, 128, 64, 64, "nz", 2, (0, 16384))
S = Buffer("s", Level.WS, F32, 16, 16, 16, "nd", 1, (0,))
X = Buffer("x", Level.UB, F32, 8, 8, 8, "nd", 1, (64,), True)


def memory(*buffers: Buffer) -> MemoryMap:
    chip = load_chip("910B2")
    return MemoryMap(Program("k", chip.name, "MIX_AIC_1_2", (), 4, False, 1024, buffers, (), ()), chip)


def test_a_level_is_used_up_to_the_end_of_its_last_slot() -> None:
    assert memory(A, X).used(Level.L1) == 32768
    assert memory(A, X).used(Level.UB) == 64 + 256


def test_levels_without_buffers_are_left_out() -> None:
    assert list(memory(A).data()) == ["L1"]


def test_every_buffer_has_its_line_with_tile_slots_and_addresses() -> None:
    line = next(line for line in str(memory(A)).splitlines() if " a " in line)
    assert line.split("  ")[-1] == "0x0 0x4000"
    assert "f16[128, 64] nz x 2" in line
    assert "32 KiB" in line


def test_half_a_tile_is_said_to_be_half() -> None:
    assert "f32[8, 8] nd, half" in str(memory(X))


def test_the_workspace_lies_in_gm_and_has_no_limit() -> None:
    assert "in GM, for each of 4 blocks" in str(memory(S))
    assert memory(S).data()["WS"] == {"used": 1024, "usable": None}
