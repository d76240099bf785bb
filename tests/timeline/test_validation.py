"""Public measurements: what `make validate` prints stays within its limits, and a part of the rows was never fitted."""

from __future__ import annotations

from statistics import mean

import pytest

from benchmarks.experts.attention import Attention, attention
from benchmarks.experts.gemm import Gemm, gemm
from benchmarks.validate.__main__ import LIMITS, ORDER, apart, ordered
from benchmarks.validate.rows import Row, rows, without
from benchmarks.validate.vector import add
from tile_eg.chips import known_chips, load_chip
from tile_eg.chips.loader import chip_marks
from tile_eg.timeline.engine import run

pytestmark = pytest.mark.slow


def held_out(family: str) -> list[Row]:
    return [r for r in rows() if r.family == family and r.used == "held out"]


@pytest.mark.parametrize("family", LIMITS)
def test_a_family_comes_out_within_its_limit(family: str) -> None:
    assert mean(abs(r.error) for r in rows() if r.family == family) <= LIMITS[family]


@pytest.mark.parametrize("family", LIMITS)
def test_rows_that_nothing_was_fitted_on_are_not_far_beyond_it(family: str) -> None:
    assert mean(abs(r.error) for r in held_out(family)) <= 1.2 * LIMITS[family]


@pytest.mark.parametrize("family", LIMITS)
def test_a_part_of_each_family_is_held_out(family: str) -> None:
    assert len(held_out(family)) >= len([r for r in rows() if r.family == family]) / 3


def test_no_row_is_held_out_that_repeats_a_fitted_program() -> None:
    fitted = {(r.chip, r.build, str(r.args)) for r in rows() if r.used == "fit"}
    assert not [r.name for r in rows() if r.used == "held out" and (r.chip, r.build, str(r.args)) in fitted]
    assert all((r.chip, r.build, str(r.args)) in fitted for r in rows() if r.used == "repeat")


@pytest.mark.parametrize("family", LIMITS)
def test_a_family_says_what_its_constants_would_be_without_it(family: str) -> None:
    fitted = {m.name for name in known_chips(None) for m in chip_marks(name) if m.kind == "fitted"}
    assert without(family).keys() <= fitted


def test_what_its_author_made_quicker_is_predicted_quicker() -> None:
    assert ordered(apart()) >= ORDER


def test_every_row_names_its_public_source() -> None:
    assert all(":" in r.source and r.schedule for r in rows())


# ---- large shapes -----------------------------------------------------------------------------------------------------------

SHORT = {
    "GEMM, three nested loops": gemm(Gemm(2048, 1536, 2048, (128, 256), 64, 64, l1_slots=1, core=(2048, 1536), b="nk")),
    "GEMM, panels of different depth": gemm(Gemm(1024, 2560, 4096, (128, 256), 128, 256, core=(1024, 2560), b="nk")),
    "attention": attention(Attention(128, 32768)),
    "addition": add(1 << 22, 4096, 1),
}


@pytest.mark.parametrize("name", SHORT)
def test_the_steady_state_extrapolates_to_the_full_run(name: str) -> None:
    quick, exact = run(SHORT[name], load_chip()), run(SHORT[name], load_chip(), exact=True)
    assert quick.extrapolated
    assert quick.cycles == pytest.approx(exact.cycles, rel=1e-9)


@pytest.mark.parametrize("name", ["8192 case 1", "8192 case 3", "PTO 32768"])
def test_the_largest_shapes_are_timed_in_few_steps(name: str) -> None:
    timeline = next(r for r in rows() if r.name == name).timeline
    assert timeline.extrapolated
    assert len(timeline.spans) < 20_000


def test_the_order_of_tiles_decides_what_l2_keeps() -> None:
    rows, bands, columns = (
        run(gemm(Gemm(8192, 8192, 8192, (128, 256), 256, 256, persistent=24, swizzle=window)), load_chip("910B1"), record=False)
        for window in (1, 3, 64)
    )
    assert bands.microseconds < 0.95 * min(rows.microseconds, columns.microseconds)
    assert bands.hbm_cycles < rows.hbm_cycles < columns.hbm_cycles
