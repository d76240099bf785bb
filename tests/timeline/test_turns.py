"""HBM between the cores: while one reads from L2, the others have its share."""

from __future__ import annotations

from dataclasses import replace

import pytest
from timeline_programs import TILE, vector_program

from benchmarks.experts.gemm import Gemm, gemm
from tile_eg.chips import load_chip
from tile_eg.ir.index import BLOCK, var
from tile_eg.ir.program import Gm, Instr, Loop, Node, Tile
from tile_eg.ops.types import F16
from tile_eg.timeline.accesses import accesses
from tile_eg.timeline.engine import run
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.turns import beside, turns
from tile_eg.timeline.work import Work
from tile_eg.timeline.works import Pricer

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


def test_what_comes_twice_as_often_counts_twice() -> None:
    hit = replace(LOAD, miss=0.0, rows=64)
    assert beside(CHIP, LOAD, [hit], [2.0]) == pytest.approx(beside(CHIP, LOAD, [hit, hit]))


def _drawing(*nodes: Node) -> dict[str, float]:
    """How many cores draw from HBM beside the loads of x, all of which miss, where those of y are found in L2."""
    p = vector_program(*nodes, blocks=48)
    found = accesses(p)
    missed = {id(a.instr): float(a.window.tensor == "x") for a in found}
    return {a.window.tensor: n for a in found if (n := turns(CHIP, Pricer(p, CHIP, 48, missed), found).get(id(a.instr)))}


def test_loads_around_a_loop_are_in_turn_with_those_in_it() -> None:
    x, y = (Instr("gm_to_ub", Tile("a"), (Gm(tensor, var(BLOCK), 64),), *TILE) for tensor in ("x", "y"))
    each, around = _drawing(Loop("i", 8, (y, x))), _drawing(Loop("i", 4, (y, Loop("j", 2, (x,)))))
    assert each["x"] < around["x"] < 48
    assert "x" not in _drawing(Loop("i", 8, (y,)), Loop("j", 8, (x,)))


def test_all_cores_get_less_of_hbm_by_a_copy_that_makes_nz() -> None:
    assert cycles(CHIP, LOAD) > 1.05 * 256 * 512 / CHIP.hbm_share(24)


def test_a_core_with_more_rows_than_the_first_one_is_timed() -> None:
    ours = Gemm(160, 6144, 2048, (128, 256), 256, 256, b="zN", persistent=20, by_columns=True, shuffle=True)
    more, less = (run(gemm(replace(ours, swizzle=n)), load_chip("910B3")).microseconds for n in (3, 4))
    assert more > 1.02 * less
