"""Blocks together: taken where tiles are small or loads hold a product up, right at tails, and a move like others."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tests.transforms.test_blocks_together import CHAIN, GATED
from tests.transforms.test_packed_operand import GEMM
from tile_eg.chips import load_chip
from tile_eg.cost_models import rank_model
from tile_eg.explore.why_not import why_not
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_bounds import Expected
from tile_eg.locate.search import located_outside
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning
from tile_eg.search.form import Setting, searched
from tile_eg.transforms.blocks_together import together

MOVE = "blocks-together"
EXAMPLES = Path(__file__).parents[2] / "examples"


@lru_cache
def gated(chip: str = "950", **options) -> Lowered:
    sizes = {"M": 4096, "N": 6144, "K": 1024, "BM": 128, "BN": 128, "BK": 64}
    return lower(kernel(GATED, **sizes), chip, search=search_options(**options))


def moves_of(low: Lowered) -> list[bool]:
    return [t.made for t in low.tried if t.offer.move.name == MOVE]


@pytest.mark.long
@pytest.mark.slow
def test_a_block_does_two_where_there_is_room_for_their_sums():
    assert gated().form.moves == ("blocks-together 2 along x",)
    assert gated().cost.microseconds < 0.95 * gated(without=(MOVE,)).cost.microseconds


@pytest.mark.slow
def test_blocks_that_wait_for_themselves_do_so_side_by_side():
    k = kernel(CHAIN, H=13, L=168)
    low, arrays = lower(k, "910B2"), arrays_for(k)
    assert low.form.moves == ("blocks-together 2 along x, side by side",)
    got, want = low.run(arrays).outputs, meaning(k, arrays)
    assert all(np.allclose(got[name], want[name], atol=1e-5) for name in want)


@pytest.mark.slow
def test_it_can_be_switched_off_and_asked_for():
    text = (EXAMPLES / "softmax.tile").read_text("utf-8")
    low = lower(kernel(text, M=64, N=64, BM=1), search=search_options(without=(MOVE,)))
    assert not low.form.moves and "it was left out" in str(why_not(low, MOVE))


@pytest.mark.slow
def test_where_l0c_is_full_it_is_not_offered():
    assert not moves_of(gated("910B2", effort="none"))


@pytest.mark.slow
def test_small_tiles_of_a_product_become_large_ones():
    sizes = {"M": 4096, "N": 4096, "K": 512}
    small = lower(kernel(GEMM, **sizes, BM=64, BN=64), "950")
    assert small.cost.microseconds <= 1.01 * lower(kernel(GEMM, **sizes, BM=128, BN=256), "950").cost.microseconds


@pytest.mark.slow
def test_a_block_for_each_row_is_as_good_as_one_for_many():
    text = (EXAMPLES / "softmax.tile").read_text("utf-8")
    options = search_options(without=("side-by-side",))
    alone, many = (lower(kernel(text, M=8192, N=512, BM=rows), search=options).cost.microseconds for rows in (1, 16))
    assert alone <= 1.01 * many


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{"M": 105, "N": 257, "BM": 1}, {"M": 300, "N": 999, "BM": 3}])
def test_rows_of_neighbours_are_right_at_tails(sizes):
    k, chip = kernel((EXAMPLES / "layer_norm.tile").read_text("utf-8"), **sizes), load_chip("910B2")
    values = together(to_values(k), 0, 5)
    form = searched(k, values, Setting(chip, search_options(), rank_model("timeline", chip)), values)
    arrays = arrays_for(k)
    run = form.best.planned.run(arrays)
    assert np.allclose(run["Y"], meaning(k, arrays)["Y"], rtol=1e-2, atol=1e-2)


@pytest.mark.long
@pytest.mark.slow
def test_where_what_follows_has_no_room_for_large_tiles_they_stand_side_by_side():
    sizes = {"M": 4096, "K": 4096, "N": 14336}
    low = lower(kernel((EXAMPLES / "epilogues/gated_mlp.tile").read_text("utf-8"), **sizes), "950")
    assert low.form.moves == ("blocks-together 2 along x, side by side",)


@pytest.mark.slow
def test_the_first_wrong_element_is_not_said_to_be_of_another_block():
    """Tiles of such a kernel are not those of its source, whose grid the indices are of."""
    low = lower(kernel((EXAMPLES / "softmax.tile").read_text("utf-8"), M=64, N=64, BM=1))
    assert low.form.moves
    arrays = arrays_for(low.kernel)
    run = low.run(arrays)
    wrong = {"Y": Expected(run.outputs["Y"] + (np.arange(64)[:, None] == 40), np.zeros((64, 64)))}
    first = located_outside(low, arrays, run, wrong, "", {}).first
    assert first.element[0] == 40 and not first.grid


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
