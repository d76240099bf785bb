"""Slots ahead: what a skewed loop reads in later trips too is loaded while these are still to come."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.ir.machine import USABLE_EVENT_IDS
from tile_eg.search import search_options
from tile_eg.search.candidates import Candidate
from tile_eg.search.compiler import lower, meaning

TEXT = (Path(__file__).parents[2] / "examples" / "attention" / "backward_dkv.tile").read_text("utf-8")
KERNEL = kernel(TEXT, H=1, S=330, BM=64, BN=64)
pytestmark = pytest.mark.slow


@cache
def found() -> tuple[Candidate, Candidate]:
    """The fastest schedule of the gradient of keys, and the fastest whose loads wait for readers in later trips; without those
    of a larger skew, for which there are fewer ids than slots."""
    low = lower(KERNEL, "910B2", search=search_options(without=("fewer-ids",)))
    return low.ranked[0], next(c for c in low.ranked if not c.schedule.ahead)


@pytest.mark.parametrize("order", [None, 1, 2])
def test_loads_that_run_ahead_of_all_readers_overwrite_nothing(order):
    arrays, planned = arrays_for(KERNEL), found()[0].planned
    wanted = meaning(KERNEL, arrays)
    for name, got in planned.run(arrays, order=order).outputs.items():
        np.testing.assert_allclose(got.astype(np.float32), wanted[name].astype(np.float32), rtol=0.01, atol=0.01, err_msg=name)


def test_the_gradient_of_keys_loads_queries_ahead_of_the_products_that_need_them_last():
    best, without = found()
    assert best.schedule.ahead and best.microseconds < without.microseconds


def test_more_slots_are_loaded_in_turn_than_there_are_ids_for_flags():
    schedule = found()[0].schedule
    loaded = {step.dst for step, around in schedule.walk() if around and step.pipe == "AIC.MTE2"}
    slots = {s.name: s.slots for sid, s in schedule.storages.items() if sid in loaded}
    assert slots["q"] > 2 and sum(slots.values()) > len(USABLE_EVENT_IDS)
