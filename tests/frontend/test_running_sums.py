"""Running sums and products along long rows: of groups of 16 elements as columns, then of their totals."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

TEXT = """kernel k(X: {dtype}[{M}, {N}]) -> Y: {dtype}[{M}, {N}] {{
  grid bx = ceildiv({M}, {m})
  shared x: {dtype}[{m}, {N}]
  x = pad(X[bx*{m}, 0], {pad})
  Y[bx*{m}, 0] = {word}(x{more})
}}"""


@pytest.mark.few(2)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("dtype", "rows", "cols", "word", "more", "chip"), [
    ("f32", 4, 1024, "cumsum", "", "910B2"),
    ("f32", 1, 528, "cumsum", "", "910B2"),  # groups that are no whole squares
    ("f32", 3, 640, "cumsum", ", 1, 1", "910B2"),  # from the last one on
    ("f16", 2, 512, "cumsum", "", "950"),
    ("f32", 2, 512, "cumprod", "", "910B2"),
])  # fmt: skip
def test_each_element_has_what_is_before_it(dtype: str, rows: int, cols: int, word: str, more: str, chip: str) -> None:
    size = (rows + 1, cols)  # the last tile is cut off
    text = TEXT.format(dtype=dtype, M=size[0], N=cols, m=rows, word=word, more=more, pad=float(word == "cumprod"))
    x = np.random.default_rng(1).integers(-2, 3, size).astype(np.float32)
    x = 1 + x / 1024 if word == "cumprod" else x
    turned = x[:, ::-1] if more else x
    want = (np.cumprod if word == "cumprod" else np.cumsum)(turned.astype(np.float64), axis=1)
    got = lower(load_text(text).instantiate(), chip).run({"X": x.astype(np.float16 if dtype == "f16" else np.float32)})["Y"]
    np.testing.assert_allclose(got, want[:, ::-1] if more else want, rtol=1e-5)


@pytest.mark.slow
def test_long_rows_are_gathered_by_their_totals_alone() -> None:
    text = TEXT.format(dtype="f32", M=4, N=1024, m=4, word="cumsum", more="", pad=0.0)
    source = lower(load_text(text).instantiate()).source
    assert source.count("AscendC::TransDataTo5HD<float>") == 2
    gathers = [line for line in source.splitlines() if "AscendC::Gather(" in line]
    assert gathers and all(", 256);" in line for line in gathers)
