"""Cores that take tiles in turn: in the last turn, which some of them lack, the others have more of the memory system."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from timeline_programs import load, set_, vector_program, vexp, wait

from benchmarks.experts.gemm import Gemm, gemm
from tile_eg.chips import load_chip
from tile_eg.ir.index import BLOCK, var
from tile_eg.ir.program import Gm, Program, Tasks
from tile_eg.timeline.engine import least, run
from tile_eg.timeline.guards import loads

CHIP = load_chip("910B3")
ROWS = Gemm(20, 6144, 4096, (128, 256), 256, 256, b="zN")
"""24 tiles on 20 cores, whose loads HBM bounds."""


def in_turn(tiles: int, blocks: int = 20) -> Program:
    """So many loads that no other core makes, each with some work, on `blocks` cores."""
    at = var("task") * blocks + var(BLOCK)
    one = load()
    flags = set_("MTE2", "V"), wait("MTE2", "V"), vexp(), set_("V", "MTE2"), wait("V", "MTE2")
    body = replace(one, srcs=(Gm("x", at * 65536, one.srcs[0].stride),)), *flags
    most, until = -(-tiles // blocks), (tiles + blocks - 1 - var(BLOCK)) // blocks
    return vector_program(Tasks("task", most, body, until=until), blocks=blocks)


def test_cores_that_have_no_last_tile_work_before() -> None:
    assert loads(in_turn(24), 20).turns == (20, 4)
    assert loads(in_turn(40), 20).turns is None


@pytest.mark.slow
def test_tiles_in_turn_take_what_as_many_blocks_take() -> None:
    in_turn, blocks = (run(gemm(replace(ROWS, persistent=n)), CHIP).cycles for n in (20, 0))
    assert in_turn == pytest.approx(blocks, rel=0.05)


@pytest.mark.slow
def test_one_more_tile_takes_no_less_time() -> None:
    times = [run(gemm(replace(ROWS, n=256 * n, persistent=20)), CHIP).cycles for n in (20, 21, 24, 30, 39, 40)]
    assert all(b > 0.99 * a for a, b in pairwise(times))  # A is missed by mean, of which more tiles have a little less
    assert times[1] > 1.4 * times[0]


def test_turns_that_are_skipped_take_what_they_take_one_by_one() -> None:
    program = in_turn(20 * 40 + 3)
    assert run(program, CHIP).cycles == pytest.approx(run(program, CHIP, exact=True).cycles)


def test_what_a_launch_takes_at_the_least_holds() -> None:
    assert least(in_turn(24), CHIP) <= run(in_turn(24), CHIP).microseconds
