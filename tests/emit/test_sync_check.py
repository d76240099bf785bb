"""The judge of synchronised programs finds what the machine would trip over."""

from __future__ import annotations

import pytest

from tile_eg.emit.sync.check import races
from tile_eg.ir.program.parser import parse_program

HEAD = """program k on 910B2 as MIX_AIC_1_2, blocks 1, workspace 4096
tensor A: f32[64, 8]
buffer a: UB f32 8 x 8 nd, pitch 8, slots 1 at 0
buffer w: WS f32 8 x 8 nd, pitch 8, slots 1 at 0
buffer c: L0C f32 16 x 16 nz, pitch 16, slots 1 at 0
"""
LOAD, USE = "gm_to_ub a <- A{0 : 8} : 8 x 8", "vexp a <- a : 8 x 8"
FULL = "set MTE2 -> V id 0 wait MTE2 -> V id 0"


def judged(vector: str, cube: str = "") -> str:
    return "\n".join(races(parse_program(f"{HEAD}cube {{ {cube} }}\nvector {{ {vector} }}", "k.program")))


def test_a_sound_program_has_no_findings() -> None:
    assert judged(f"{LOAD} {FULL} {USE}") == ""


FAULTY = {
    "a read that no flag orders": (f"{LOAD} {USE}", "nothing orders AIV gm_to_ub"),
    "order on a pipe is not completion": (f"{LOAD} {FULL} {USE} {USE}", "nothing orders AIV vexp"),
    "a barrier does not reach other pipes": (f"{LOAD} barrier MTE2 {USE}", "nothing orders AIV gm_to_ub"),
    "a flag that is set and never waited for": (f"{LOAD} {FULL} {USE} set V -> MTE2 id 1", "never waited for"),
    "a wait without a set": (f"wait MTE2 -> V id 3 {USE}", "before it is set"),
    "a flag set twice": (f"{LOAD} set MTE2 -> V id 0 {FULL} {USE}", "set twice"),
    "a flag that may be set before its wait is over": (f"for i in 2 {{ {FULL} }}", "may be set again"),
    "an id of the framework": ("set V -> MTE2 id 6 wait V -> MTE2 id 6", "not in 0 .. 5"),
    "a race round the back edge": (f"for i in 3 {{ {LOAD} {FULL} barrier V {USE} }}", "nothing orders AIV vexp"),
}


@pytest.mark.parametrize(("body", "finding"), FAULTY.values(), ids=FAULTY)
def test_it_finds(body: str, finding: str) -> None:
    assert finding in judged(body)


def test_it_finds_a_deadlock_between_the_cores() -> None:
    assert "deadlock" in judged("cross_wait 0 cross_set V 1", "cross_wait 1 cross_set FIX 0")


def test_it_finds_a_read_of_workspace_before_the_other_core_filled_it() -> None:
    found = judged("gm_to_ub a <- w : 8 x 8", "fixpipe w <- c : 8 x 8")
    assert "before anything is in it" in found or "nothing orders" in found


def test_a_cross_core_flag_orders_the_cores() -> None:
    assert judged("cross_wait 0 gm_to_ub a <- w : 8 x 8", "fixpipe w <- c : 8 x 8 cross_set FIX 0") == ""


def test_a_counter_that_is_never_taken_is_left_over() -> None:
    assert "too often" in judged("", "fixpipe w <- c : 8 x 8 cross_set FIX 0")


def test_a_counter_may_not_run_beyond_fifteen() -> None:
    assert "beyond 15" in judged("for i in 20 { cross_wait 0 }", "for i in 20 { cross_set FIX 0 }")
