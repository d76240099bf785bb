"""Cores meeting: a loop whose trips need nothing of each other is tried with the work of both kinds of core in its trips."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.search.compiler import Lowered, lower, meaning

TEXT = (Path(__file__).parents[2] / "examples" / "epilogues" / "mlp.tile").read_text("utf-8")
KERNEL = kernel(TEXT)
pytestmark = pytest.mark.slow


@cache
def found() -> Lowered:
    return lower(KERNEL, "950")


def test_the_whole_mlp_hands_its_hidden_layer_over_in_the_loop_that_reads_it():
    (tried,) = (t for t in found().tried if t.offer.move.name == "cores-meeting")
    assert tried.microseconds == found().ranked[0].microseconds


@pytest.mark.parametrize("order", [None, 1])
def test_what_is_handed_over_in_each_trip_is_right(order):
    arrays = arrays_for(KERNEL)
    run = found().ranked[0].planned.run(arrays, order=order)
    assert not run.findings
    np.testing.assert_allclose(run.outputs["Y"], meaning(KERNEL, arrays)["Y"], rtol=1e-3, atol=0.1)  # of some 400
