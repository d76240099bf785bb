"""Tensors and buffers of bools in `.tile`: conditions where they are looked at, 0 or 1 beside numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text

TILES = """kernel tiles(X: f32[16, 64], M: bool[16, 64], V: bool[64]) -> (Y: f32[16, 64], N: bool[16, 64]) {{
  grid b = 1
  shared x: f32[16, 64], m: bool[16, 64], v: bool[64], n: bool[16, 64]
  x = X[0, 0]
  m = M[0, 0]
  v = V[0]
  {}
  Y[0, 0] = x
  N[0, 0] = n
}}
"""
X = np.random.default_rng(0).uniform(-1, 1, (16, 64)).astype(np.float32)
M, V = X > 0.3, np.arange(64) % 3 == 0
CASES = {
    "elements": (
        "parallel (i, j) in (16, 64) { x[i, j] = select(m[i, j] & ~v[j], x[i, j], x[i, j] * m[i, j] - 1)\n"
        " n[i, j] = x[i, j] > 0 }",
        np.where(M & ~V, X, X * M - 1), None,
    ),
    "tiles": ("n = ~m | v[None, :]\n x = select(n, x, 0)", np.where(~M | V, X, 0), ~M | V),
    "transposed": ("n = m\n x = select(m.T.T, x, 0)", np.where(M, X, 0), M),
    "a branch": ("n = m\n parallel (i, j) in (16, 64) { if m[i, j] { x[i, j] = 0 } }", np.where(M, 0, X), M),
    "numbers are stored as whether they are not 0": ("n = x * m\n x = x + n", X + M, M),
}  # fmt: skip


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("case", CASES)
def test_they_choose_and_are_stored(tmp_path: Path, case: str) -> None:
    text, wanted, kept = CASES[case]
    (tmp_path / "tiles.tile").write_text(TILES.format(text))
    y, n = tile_eg.load(tmp_path / "tiles.tile", effort="none")(X, M, V)
    np.testing.assert_array_equal(y, wanted)
    assert n.dtype == bool and np.array_equal(n, wanted > 0 if kept is None else kept)


@pytest.mark.slow
def test_they_choose_between_whole_tensors(tmp_path: Path) -> None:
    text = "kernel whole(X: f32[16, 64], M: bool[16, 64]) -> (Y: f32[16, 64], N: bool[16, 64])"
    text += " { Y = where(M, X, -1)\n N = X > 0.5 }"
    (tmp_path / "whole.tile").write_text(text)
    y, n = tile_eg.load(tmp_path / "whole.tile", effort="none")(X, M)
    assert np.array_equal(y, np.where(M, X, -1)) and np.array_equal(n, X > 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [("m = X[0, 0]", "`m` holds bools, and what is loaded are numbers"), ("m += x", "to which nothing is added")],
)
def test_numbers_of_a_tensor_and_sums_are_refused(text: str, message: str) -> None:
    with pytest.raises(TileError, match=message):
        load_text(TILES.format(f"n = m\n  {text}")).instantiate()


def test_a_tile_of_numbers_is_no_condition() -> None:
    with pytest.raises(TileError, match="a choice goes by a condition") as e:
        load_text(TILES.format("x = select(x, x, 0)\n n = m")).instantiate()
    assert "x != 0" in e.value.help
