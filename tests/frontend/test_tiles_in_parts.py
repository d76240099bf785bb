"""A buffer that is put together of parts: nothing is kept of what it was, and it is stored as far as its tensor goes."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.values import made_of, reachable
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

TURNED = """kernel turned[S=21, H=2, D=64](X: f32[S, H, D]) -> Y: f16[S, H, D] {
  grid bs = ceildiv(S, 8)
  shared x: f32[8, D]
  fragment y: f32[8, D]
  for h in serial(H) {
    x = X[bs*8 : bs*8 + 8, h, :]
    parallel (i, j) in (8, D // 2) {
      y[i, j + D // 2] = x[i, j]
      y[i, j] = 0 - x[i, j + D // 2]
    }
    Y[bs*8 : bs*8 + 8, h, :] = y
  }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("rows", [21, 24, 3])
def test_a_tile_of_parts_is_stored_as_far_as_its_tensor_goes(rows: int) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (rows, 2, 64)).astype(np.float32)
    got = lower(load_text(TURNED).instantiate({"S": rows})).run({"X": x}).outputs["Y"]
    np.testing.assert_array_equal(got, np.concatenate([-x[..., 32:], x[..., :32]], -1).astype(np.float16))


def test_parts_that_are_all_of_a_tile_keep_nothing_of_the_trip_before() -> None:
    (loop,) = (t for t in reachable(to_values(load_text(TURNED).instantiate({"S": 24}))) if t.op == "loop")
    assert [init.op for init, _ in loop.args[2]] == ["given"]


@pytest.mark.slow
def test_a_part_that_leaves_something_keeps_it() -> None:
    text = TURNED.replace("y[i, j] = 0 - x[i, j + D // 2]", "").replace("for h in serial(H) {", "y = 3  for h in serial(H) {")
    x = np.random.default_rng(0).uniform(-1, 1, (24, 2, 64)).astype(np.float32)
    got = lower(load_text(text).instantiate({"S": 24})).run({"X": x}).outputs["Y"]
    np.testing.assert_array_equal(got[..., :32], np.full((24, 2, 32), 3, np.float16))


def test_all_of_a_vector_is_no_piece_of_it() -> None:
    text = """kernel k[D=64](X: f32[8, D]) -> Y: f32[8, 32] {
      shared x: f32[8, D], y: f32[8, 32]
      x = X[0, 0]
      x = x * rowsum(x)[:, None]
      parallel (i, j) in (8, 32) { y[i, j] = x[i, j + 32] }
      Y[0, 0] = y }"""
    values = to_values(load_text(text).instantiate())
    assert not [t for t in made_of(values.outputs) if t.op == "piece"]


ONE_ROW = """kernel half[N=1, D=16](X: f16[N, D], C: f32[N, D//2]) -> Y: f16[N, D] {
  shared x: f16[8, D], y: f16[8, D], c: f32[8, D//2]
  x = X[0, 0]
  c = C[0, 0]
  parallel (i, j) in (8, D//2) {
    y[i, j] = x[i, j] * c[i, j]
    y[i, j + D//2] = x[i, j + D//2] - c[i, j]
  }
  Y[0, 0] = y
}
"""


@pytest.mark.slow
def test_half_a_block_of_a_row_that_may_not_exist_is_cast() -> None:
    x, c = np.ones((1, 16), np.float16), np.arange(8, dtype=np.float32)[None]
    ran = lower(load_text(ONE_ROW).instantiate(), search=search_options(effort="none")).run({"X": x, "C": c})
    np.testing.assert_array_equal(ran.outputs["Y"], np.concatenate([c, 1 - c], 1).astype(np.float16))
