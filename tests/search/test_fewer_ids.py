"""Fewer ids: rings that lack flag ids keep their slots where that is faster, and give them up where it is not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.explore.why_not import why_not
from tile_eg.report.differences import difference
from tile_eg.search import search_options
from tile_eg.search.candidates import Candidate
from tile_eg.search.compiler import Lowered, lower, meaning

EXAMPLES = Path(__file__).parents[2] / "examples"
LINEAR = kernel((EXAMPLES / "scans" / "linear_attention.tile").read_text("utf-8"))
ROPE = kernel((EXAMPLES / "rope" / "rms_norm_rope.tile").read_text("utf-8"))
pytestmark = pytest.mark.slow


@cache
def found(k=LINEAR, **options: object) -> Lowered:
    return lower(k, "910B2", search=search_options(**options))


def first(low: Lowered, few: bool) -> Candidate:
    return next(c for c in low.ranked if c.schedule.few_ids == few and not c.schedule.ahead)


@pytest.mark.parametrize("order", [None, 1, 2])
def test_slots_that_share_an_id_are_not_overwritten_too_early(order):
    arrays, planned = arrays_for(LINEAR), found().ranked[0].planned
    wanted = meaning(LINEAR, arrays)
    run = planned.run(arrays, order=order)
    assert not run.findings
    for name, got in run.outputs.items():
        np.testing.assert_allclose(got.astype(np.float32), wanted[name].astype(np.float32), rtol=0.02, atol=0.02, err_msg=name)


def test_rings_that_keep_their_slots_are_taken_where_that_is_faster():
    low = found()
    assert first(low, True) is low.ranked[0] and low.ranked[0].microseconds < first(low, False).microseconds


def test_rings_that_give_up_slots_are_taken_where_that_is_faster():
    low = found(ROPE, without=("side-by-side", "trips-in-blocks"))
    assert first(low, False) is low.ranked[0] and low.ranked[0].microseconds < first(low, True).microseconds


def test_without_the_move_no_ring_has_fewer_ids_than_slots():
    assert not any(c.schedule.few_ids for c in found(without=("fewer-ids", "slots-ahead")).ranked)


def test_why_not_tells_what_fewer_ids_would_cost():
    assert "9.04 us" in str(why_not(found(ROPE, without=("side-by-side", "trips-in-blocks")), "fewer-ids"))


def test_the_difference_of_both_ways_is_told_in_words():
    low = found(ROPE, without=("side-by-side", "trips-in-blocks"))
    few, gave_up = first(low, True).schedule, next(c.schedule for c in low.ranked if c.schedule.fuller)
    assert "rings that lack flag ids: keep their slots, with fewer ids instead of give up slots" in difference(few, gave_up)


BACKWARD = kernel((EXAMPLES / "attention" / "backward_dkv.tile").read_text("utf-8"))


@pytest.mark.parametrize("order", [None, 1])
def test_a_loop_of_few_trips_has_fewer_ids_than_slots_too(order):
    """In steps with nothing to do, what frees places would run ahead of what fills them: a flag back holds it."""
    low, arrays = found(BACKWARD), arrays_for(BACKWARD)
    best, wanted = low.ranked[0], meaning(BACKWARD, arrays)
    assert best.schedule.few_ids and best.microseconds < 0.96 * first(low, False).microseconds
    run = best.planned.run(arrays, strict=False, order=order).as_meant(BACKWARD, arrays)
    assert not run.findings
    for name, want in wanted.items():
        np.testing.assert_allclose(run[name].astype(float), want.astype(float), rtol=0.02, atol=0.02, err_msg=name)
