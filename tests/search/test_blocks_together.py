"""Blocks together: taken where loads hold several sums up, right at tails, and a move like others."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tests.transforms.test_blocks_together import GATED
from tests.transforms.test_packed_operand import GEMM
from tile_eg.chips import load_chip
from tile_eg.cost_models import rank_model
from tile_eg.explore.why_not import why_not
from tile_eg.frontend.ssa import to_values
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning
from tile_eg.search.form import Setting, searched
from tile_eg.transforms.blocks_together import together

MOVE = "blocks-together"


@lru_cache
def gated(chip: str = "950", **options) -> Lowered:
    sizes = {"M": 4096, "N": 6144, "K": 1024, "BM": 128, "BN": 128, "BK": 64}
    return lower(kernel(GATED, **sizes), chip, search=search_options(**options))


def moves_of(low: Lowered) -> list[bool]:
    return [t.made for t in low.tried if t.offer.move.name == MOVE]


@pytest.mark.slow
def test_a_block_does_two_where_there_is_room_for_their_sums():
    assert gated().form.moves == ("blocks-together 2 along x",)
    assert gated().cost.microseconds < 0.95 * gated(without=(MOVE,)).cost.microseconds


@pytest.mark.slow
def test_it_can_be_switched_off_and_asked_for():
    assert not gated(without=(MOVE,)).form.moves
    assert "it was left out" in str(why_not(gated(without=(MOVE,)), MOVE))


@pytest.mark.slow
def test_where_l0c_is_full_it_is_not_offered():
    assert not moves_of(gated("910B2", effort="none"))


@pytest.mark.slow
def test_of_one_sum_the_author_says_how_large_its_tiles_are():
    assert not moves_of(lower(kernel(GEMM, M=4096, N=4096, K=512, BM=128, BN=128), "950"))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize(("along", "count"), [(0, 2), (1, 2)])
def test_the_result_is_right_at_tails(along, count, chip):
    k, named = kernel(GATED), load_chip(chip)
    values = together(to_values(k), along, count)
    form = searched(k, values, Setting(named, search_options(), rank_model("timeline", named)), values)
    arrays = arrays_for(k)
    got, want = form.best.planned.run(arrays)["Y"], meaning(k, arrays)["Y"]
    assert np.allclose(got, want, rtol=1e-3, atol=1e-3)
