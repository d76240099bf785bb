"""Open sizes of long sums: the estimate knows that few tiles go to all cores in parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tile_eg
from tests.search.test_open_sizes import CHIP, left_open
from tile_eg.frontend.ssa import to_values
from tile_eg.search import search_options
from tile_eg.search.compiler import lower
from tile_eg.sizing.estimate import estimate
from tile_eg.sizing.phases import best_parts, with_parts
from tile_eg.transforms.split_k import COUNTS, in_parts

SKINNY = {"M": 128, "N": 128, "K": 16384}


def values_of(**sizes: int):
    return to_values(left_open("gemm", "BM", **{"BN": 128, **sizes}).build({"BM": 128}))


def test_a_long_sum_of_one_tile_is_estimated_in_parts():
    found = with_parts(values_of(**SKINNY), CHIP)
    assert found.parts == 16
    assert found.cycles < estimate(values_of(**SKINNY), CHIP).cycles / 4


@pytest.mark.parametrize("sizes", [{"M": 512, "N": 512, "K": 256}, {"M": 4096, "N": 4096, "K": 4096}])
def test_short_sums_and_many_tiles_stay_whole(sizes: dict[str, int]):
    assert with_parts(values_of(**sizes), CHIP).parts == 1


def test_the_estimate_parts_sums_as_the_rule_does():
    rules = (Path(tile_eg.__file__).parent / "rules" / "60_grid.egg").read_text()
    assert [int(n) for n in re.findall(r"\(PartOpt (\d+)\)", rules)] == list(COUNTS)


@pytest.mark.parametrize("tiles", [1, 8])
def test_the_second_phase_has_as_many_panels_as_take_least(tiles: int):
    values = values_of(M=128 * tiles, N=128, K=16384)
    _, cycles = best_parts(values, 4, CHIP)
    forms = [in_parts(values, 4, n) for n in (1, 2, 4)]
    assert all(cycles <= estimate(p.first, CHIP).cycles + estimate(p.second, CHIP).cycles for p in forms)


@pytest.mark.long
def test_sizes_left_open_fit_sums_in_parts():
    kernel = left_open("gemm", "BM", "BN", **SKINNY)
    best, whole = lower(kernel), lower(kernel, search=search_options(without=["split-depth", "split-depth-added"]))
    assert best.candidates[0].schedule.parts
    assert best.cost.microseconds < whole.cost.microseconds / 2
