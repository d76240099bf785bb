"""Two trips, or two blocks, as one: the same numbers, at tails too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tests.transforms.test_split_k import whole_numbers
from tile_eg.chips import load_chip
from tile_eg.cost_models import rank_model
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import Values, reachable
from tile_eg.search import search_options
from tile_eg.search.compiler import meaning
from tile_eg.search.form import Setting, searched
from tile_eg.transforms.side_by_side import blocks_side_by_side, trips_side_by_side

HEADS = """
kernel heads[S=37, H=6, D=32, BS=16](X: f32[S, H, D], C: f32[S, D]) -> Y: f32[S, H, D], Z: f32[H, S] {
  grid bs = ceildiv(S, BS)
  shared x: f32[BS, D], c: f32[BS, D]
  fragment m: f32[BS]
  c = C[bs*BS, 0]
  for h in pipelined(H) {
    x = X[bs*BS : bs*BS + BS, h, :]
    m = rowmax(x)
    Y[bs*BS : bs*BS + BS, h, :] = (x - m[:, None]) * c + h
    Z[h, bs*BS] = m
  }
}
"""
ROWS = """
kernel rows[M=75, N=70, BM=8](X: f32[M, N], W: f32[N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N], w: f32[N]
  w = W[0]
  x = X[bx*BM, 0]
  Y[bx*BM, 0] = (x - rowmax(x)[:, None]) * w[None, :] + bx
}
"""
CARRIED = """
kernel carried[M=32, N=64](X: f32[M, N], W: f32[4, N]) -> Y: f32[M, N] {
  grid bx = 1
  shared x: f32[M, N], w: f32[N]
  x = X[0, 0]
  for k in serial(4) {
    w = W[k, 0]
    x = x * w[None, :]
  }
  Y[0, 0] = x
}
"""


def of(text: str, count: int = 2, **sizes: int) -> Values | None:
    values = to_values(kernel(text, **sizes))
    return trips_side_by_side(values, count) if "for " in text else blocks_side_by_side(values, 0, count)


CASES = [(HEADS, 2, {}), (HEADS, 3, {"S": 33}), (ROWS, 2, {}), (ROWS, 5, {"M": 80})]


@pytest.mark.parametrize(("text", "count", "sizes"), CASES, ids=["trips", "three trips", "blocks", "five blocks"])
def test_the_meaning_stays(text: str, count: int, sizes: dict[str, int]) -> None:
    k = kernel(text, **sizes)
    made, arrays = of(text, count, **sizes), whole_numbers(k)
    assert made is not None
    got, want = run_values(made, arrays), meaning(k, arrays)
    assert all(np.array_equal(got[name], want[name]) for name in want)


@pytest.mark.parametrize(("text", "count", "sizes"), CASES[:3], ids=["trips", "three trips", "blocks"])
def test_every_schedule_of_it_computes_the_same(text: str, count: int, sizes: dict[str, int]) -> None:
    k = kernel(text, **sizes)
    chip = load_chip("910B2")
    setting = Setting(chip, search_options(), rank_model("timeline", chip), k.source)
    form, arrays = searched(k, to_values(k), setting, of(text, count, **sizes)), whole_numbers(k)
    got, want = form.candidates[0].planned.run(arrays).outputs, meaning(k, arrays)
    assert all(np.array_equal(got[name], want[name]) for name in want)


def test_there_are_half_as_many_trips_or_blocks() -> None:
    trips, blocks = of(HEADS), of(ROWS)
    assert trips is not None and trips.trips == {1: 3} and blocks is not None and blocks.grid == (5,)


def test_what_both_blocks_load_is_one_load() -> None:
    made = of(ROWS)
    assert made is not None and len([t for t in reachable(made) if t.op == "load"]) == 3


@pytest.mark.parametrize(
    ("text", "count"),
    [(HEADS, 4), (HEADS, 6), (ROWS, 3), (CARRIED, 2)],
    ids=["parts of trips", "one trip", "parts of blocks", "a state"],
)
def test_others_stay_as_they_are(text: str, count: int) -> None:
    assert of(text, count) is None
