"""Tiles whose rows become columns in UB, by squares of 16 rows of 32 bytes."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ops.types import DTYPES, F16, F32
from tile_eg.ops.whole_tiles import Turns
from tile_eg.search.compiler import Lowered, lower

TEXT = """kernel k(X: {dtype}[{M}, {N}]) -> Y: {dtype}[{N}, {M}] {{
  grid (bx, by) = (ceildiv({M}, {m}), ceildiv({N}, {n}))
  shared x: {dtype}[{m}, {n}]
  fragment y: {dtype}[{n}, {m}]
  x = X[bx*{m}, by*{n}]
  y = x.T
  Y[by*{n}, bx*{m}] = y
}}"""


def compiled(dtype: str, tile: tuple[int, int], size: tuple[int, int], chip: str = "910B2") -> Lowered:
    text = TEXT.format(dtype=dtype, m=tile[0], n=tile[1], M=size[0], N=size[1])
    return lower(load_text(text).instantiate(), chip)


@pytest.mark.few(3)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("dtype", "tile", "size", "chip"), [
    ("f16", (32, 64), (64, 128), "910B2"),  # side by side
    ("f32", (64, 16), (64, 32), "910B2"),  # one below the other, rows of two blocks
    ("f32", (17, 33), (40, 50), "950"),  # neither tiles nor tensors are whole squares
    ("bf16", (5, 7), (9, 13), "910B2"),
    ("i8", (40, 8), (80, 8), "910B2"),
    ("i32", (2, 200), (7, 401), "910B2"),
    ("u16", (1, 40), (5, 90), "910B2"),  # one row: gathered
])  # fmt: skip
def test_rows_become_columns(dtype: str, tile: tuple[int, int], size: tuple[int, int], chip: str) -> None:
    x = np.random.default_rng(1).integers(0, 100, size).astype(numpy_dtype(DTYPES[dtype]))
    np.testing.assert_array_equal(compiled(dtype, tile, size, chip).run({"X": x})["Y"], x.T)


def test_whole_squares_need_no_gather() -> None:
    text = compiled("f16", (64, 64), (64, 64)).source
    assert text.count("AscendC::TransDataTo5HD<half>") == 1
    assert "Gather" not in text


@pytest.mark.parametrize(("rows", "cols", "dtype", "turns"), [
    (32, 128, F16, Turns(2, 8, True)), (128, 32, F16, Turns(2, 8, False)), (32, 128, F32, Turns(2, 16, True)),
])  # fmt: skip
def test_the_fewest_instructions_turn_a_tile(rows: int, cols: int, dtype: object, turns: Turns) -> None:
    assert Turns.of(rows, cols, dtype) == turns
