"""Inputs of which L2 serves nothing are loaded past it, where what is written then stays: which, and that it says so."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.ir.program.parser import parse_program
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning
from tile_eg.search.past_l2 import with_loads_past_l2

SCALED = """
kernel scaled[M=64, N=256, BM=16](X: f16[M, N], W: f16[N]) -> Y: f16[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f16[BM, N], w: f16[N]
  x = X[bx*BM, 0]
  w = W[0]
  Y[bx*BM, 0] = x * w[None, :]
}
"""
TAKEN = """
kernel taken[M=64, N=256, BM=16](W: f16[M, N], idx: i32[M]) -> Y: f16[M, N] {
  grid bx = ceildiv(M, BM)
  shared t: i32[BM], x: f16[BM, N]
  t = idx[bx*BM]
  parallel (i, j) in (BM, N) { x[i, j] = W[t[i], j] }
  Y[bx*BM, 0] = x
}
"""
LARGE = {"M": 65536, "N": 2048}


@cache
def compiled(text: str, *without: str, chip: str = "910B2", **sizes: int) -> Lowered:
    return lower(kernel(text, **sizes), chip, search=search_options(without=(*without, "blocks-together")))


def past(low: Lowered) -> set[str]:
    return {t.name for t in low.program.tensors if t.past_l2}


@pytest.mark.slow
def test_what_is_read_once_leaves_l2_to_what_is_written_and_what_blocks_share_stays() -> None:
    assert past(compiled(SCALED, **LARGE)) == {"X"}


@pytest.mark.slow
def test_that_is_faster_where_hbm_would_have_to_take_what_is_written() -> None:
    assert compiled(SCALED, **LARGE).cost.microseconds < 0.9 * compiled(SCALED, "past-l2", **LARGE).cost.microseconds


@pytest.mark.slow
def test_the_text_and_the_schedule_say_so() -> None:
    low = compiled(SCALED, **LARGE)
    assert low.source.count("X_gm.SetL2CacheHint(AscendC::CacheMode::CACHE_MODE_DISABLE);") == 1
    assert "loaded past L2: X" in str(low.schedule)


def test_a_program_is_read_as_it_was_printed() -> None:
    program = compiled(SCALED, **LARGE).program
    assert parse_program(str(program)) == program


@pytest.mark.slow
def test_where_l2_holds_all_of_it_nothing_leaves_it_out() -> None:
    assert not past(compiled(SCALED))


@pytest.mark.slow
def test_indices_that_the_scalar_unit_reads_stay() -> None:
    assert past(compiled(TAKEN, **LARGE)) == {"W"}


def test_a_schedule_with_loads_past_l2_tells_another_without() -> None:
    with_hint, without = (compiled(SCALED, *names, **LARGE).candidates[0].schedule for names in ((), ("past-l2",)))
    assert (with_hint.past_l2, without.past_l2) == ({"X"}, set())


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_the_numbers_are_the_same(chip: str) -> None:
    low, k = compiled(SCALED, chip=chip), kernel(SCALED)
    _, planned = with_loads_past_l2(low.candidates[0].schedule, low.candidates[0].planned, ("X",))
    arrays = arrays_for(k)
    ran = planned.run(arrays)
    np.testing.assert_array_equal(ran["Y"], meaning(k, arrays)["Y"])
    assert not ran.findings


def test_where_there_is_nothing_to_load_past_it_that_is_said() -> None:
    assert [t.why for t in compiled(SCALED).tried if t.offer.move.name == "past-l2"] == ["there is nothing for it to do"]
