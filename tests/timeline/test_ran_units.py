"""Unit flags of a text: its fixpipes run along with its products, as those of a program do."""

from __future__ import annotations

import pytest

from tests.emit.test_units import planned
from tests.timeline.test_ran import timed_as_it_ran
from tile_eg.chips import load_chip
from tile_eg.simulator.findings import TraceRow
from tile_eg.timeline.engine import run
from tile_eg.timeline.replay.launches import timed_launches
from tile_eg.timeline.replay.units import units

CHIP = load_chip()
SIZE = 128 * 128 * 4


def mmad(flag: int, at: int = 0) -> TraceRow:
    touched = (("L0A", 0, 32768, 0), ("L0B", 0, 32768, 0), ("L0C", at, at + SIZE, 1))
    return TraceRow(0, "AIC", "M", "Mmad", 1, 128**3, "macs", sizes=(128, 128, 128, 2), touched=touched, unit_flag=flag)


def fixpipe(flag: int, at: int = 0, end: int = SIZE) -> TraceRow:
    touched, sizes = (("L0C", at, at + end, 0),), (128, 512, 512, 4)
    return TraceRow(0, "AIC", "FIX", "Fixpipe", 2, end, "L0C->GM", "C", 0, sizes, touched, unit_flag=flag)


def cycles(*rows: TraceRow) -> float:
    return timed_launches(rows, CHIP, kernel="k", kernel_type="AIC_ONLY")[0].timeline.cycles


def test_a_fixpipe_under_unit_flags_runs_along_with_the_last_product() -> None:
    assert cycles(mmad(2), mmad(3), fixpipe(3)) < cycles(mmad(0), mmad(0), fixpipe(0)) - 400


def test_the_next_product_follows_the_fixpipe_block_by_block() -> None:
    flagged, plain = ([mmad(f), fixpipe(f), mmad(f), fixpipe(f)] for f in (3, 0))
    assert cycles(*flagged) < cycles(*plain) - 800


def test_blocks_of_their_own_have_names_of_their_own() -> None:
    assert units([mmad(3), mmad(3, SIZE), fixpipe(3), fixpipe(3, SIZE)]) == {
        0: "L0C at 0", 1: f"L0C at {SIZE}", 2: "L0C at 0", 3: f"L0C at {SIZE}",
    }  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        [mmad(3), fixpipe(3, 0, SIZE // 2), fixpipe(3, SIZE // 2, SIZE // 2)],
        [mmad(0), mmad(3), fixpipe(3)],
        [mmad(3)],
    ],
    ids=["in parts", "not all of them", "never taken"],
)
def test_blocks_that_do_not_change_hands_as_a_whole_are_told_by_their_bytes(rows: list[TraceRow]) -> None:
    assert units(rows) == {}
    assert cycles(*rows) > 0


@pytest.mark.slow
def test_a_text_with_unit_flags_takes_what_its_program_takes() -> None:
    own = planned(M=256, N=512, K=128)
    assert timed_as_it_ran(own).timeline.cycles == pytest.approx(run(own.program, CHIP, exact=True).cycles, rel=0.02)
