"""HBM between the cores: while one reads from L2, the others have its share."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.experts.gemm import Gemm, gemm
from tile_eg.chips import load_chip
from tile_eg.ops.types import F16
from tile_eg.timeline.engine import run
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.turns import beside
from tile_eg.timeline.work import Work

CHIP = load_chip("910B1")
LOAD = Work("gm_to_l1", 256, 256, dtype=F16, src_dtype=F16, cores=24, miss=1.0)


def test_a_load_alone_has_its_share() -> None:
    assert beside(CHIP, LOAD, []) == 24


def test_beside_a_load_that_l2_holds_fewer_cores_draw_from_hbm() -> None:
    assert 1 <= beside(CHIP, LOAD, [replace(LOAD, miss=0.0)]) < 24


def test_loads_that_miss_together_share_as_before() -> None:
    assert beside(CHIP, LOAD, [LOAD]) == 24
    half = replace(LOAD, miss=0.5)
    assert beside(CHIP, half, [half]) == 24


def test_a_turn_takes_no_less_than_hbm_needs_for_all_cores() -> None:
    hit = replace(LOAD, miss=0.0)
    both = cycles(CHIP, replace(LOAD, drawing=beside(CHIP, LOAD, [hit]))) + cycles(CHIP, hit)
    needed = 24 * 256 * 256 * 2 / min(CHIP.hbm_share(1), CHIP.path("gm_to_l1_nd2nz").hbm)
    assert needed <= both < 1.1 * needed


def test_all_cores_get_less_of_hbm_by_a_copy_that_makes_nz() -> None:
    assert cycles(CHIP, LOAD) > 1.05 * 256 * 512 / CHIP.hbm_share(24)


def test_a_core_with_more_rows_than_the_first_one_is_timed() -> None:
    ours = Gemm(160, 6144, 2048, (128, 256), 256, 256, b="zN", persistent=20, by_columns=True, shuffle=True)
    more, less = (run(gemm(replace(ours, swizzle=n)), load_chip("910B3")).microseconds for n in (3, 4))
    assert more > 1.02 * less
