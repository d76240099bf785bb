"""What an assignment computes has the type of its target where that holds more."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

TEXT = """kernel k[M=13, N=40](H: f16[M, N], X: i16[M, N], Y: i32[M, N], U: u8[M, N]) -> F: f32[M], S: i32[M, N], R: i32[M] {
  grid b = ceildiv(M, 8)
  shared h: f16[8, N], x: i16[8, N], y: i32[8, N], u: u8[8, N], s: i32[8, N]
  fragment r: i32[8], f: f32[8]
  h = H[b*8, 0]
  x = X[b*8, 0]
  y = Y[b*8, 0]
  u = U[b*8, 0]
  parallel (i, j) in (8, N) { s[i, j] = select(x[i, j] > y[i, j], max(x[i, j], y[i, j]), x[i, j]*y[i, j] - u[i, j]) }
  r = rowsum(x) + rowmax(u)
  f = rowsum(h) / N
  S[b*8, 0] = s
  R[b*8] = r
  F[b*8] = f
}"""
RNG = np.random.default_rng(0)
GIVEN = {
    "H": np.full((13, 40), 60000, np.float16), "X": RNG.integers(20000, 30000, (13, 40)).astype(np.int16),
    "Y": RNG.integers(-3000, 60000, (13, 40)).astype(np.int32), "U": RNG.integers(0, 256, (13, 40)).astype(np.uint8),
}  # fmt: skip


@cache
def outputs() -> dict[str, np.ndarray]:
    ran = lower(load_text(TEXT, "k.tile").instantiate()).run(GIVEN)
    assert not ran.findings
    return ran.outputs


@pytest.mark.slow
def test_a_sum_of_short_floats_is_not_rounded_on_its_way_to_a_wider_result() -> None:
    np.testing.assert_allclose(outputs()["F"], 60000, rtol=1e-6)


@pytest.mark.slow
def test_whole_numbers_of_two_types_are_computed_in_the_one_that_holds_both() -> None:
    x, y, u = (GIVEN[n].astype(np.int32) for n in "XYU")
    np.testing.assert_array_equal(outputs()["S"], np.where(x > y, np.maximum(x, y), x * y - u))


@pytest.mark.slow
def test_reductions_of_short_whole_numbers_keep_what_a_wider_result_holds() -> None:
    np.testing.assert_array_equal(outputs()["R"], GIVEN["X"].astype(np.int32).sum(1) + GIVEN["U"].max(1))


def test_types_of_which_none_holds_the_other_do_not_mix() -> None:
    text = TEXT.replace("rowsum(x) + rowmax(u)", "rowsum(y) + u32(rowmax(y))")
    with pytest.raises(TileError, match="i32 and u32 do not mix"):
        lower(load_text(text, "k.tile").instantiate())
