"""An operand that is a product, and that several blocks would make: made once by all cores, where that is faster."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tests.transforms.test_operand_first import LAYERS
from tile_eg.explore.runners import explained
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower

SIZES = {"M": 30, "K": 512, "H": 500, "N": 2000, "BM": 32, "BN": 128, "BH": 64, "BK": 64}
HALVES = LAYERS.replace("X: f32[M, K], A: f32[K, H], B: f32[H, N]", "X: f16[M, K], A: f16[K, H], B: f16[H, N]").replace(
    "x: f32[BM, BK], a: f32[BK, BH], b: f32[BH, BN], h: f32[BM, BH]",
    "x: f16[BM, BK], a: f16[BK, BH], b: f16[BH, BN], h: f16[BM, BH]",
)


ROWS = """
kernel rows[M=200, K=512, N=4096, BM=128, BN=256, BK=64](X: f16[M, K], g: f16[K], W: f16[K, N]) -> Y: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared x: f16[BM, BK], v: f16[BK], w: f16[BK, BN], h: f16[BM, BK]
  fragment y: f32[BM, BN] = 0, s: f32[BM] = 0
  for i in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, i*BK]
    s = max(s, rowmax(f32(x)))
  }
  for k in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, k*BK]
    v = g[k*BK]
    h = f16(f32(x) * s[:, None] + f32(v)[None, :])
    w = W[k*BK, by*BN]
    y += h @ w
  }
  Y[bx*BM, by*BN] = y
}
"""


@lru_cache
def layers(chip: str = "910B2", **options: object) -> Lowered:
    return lower(kernel(HALVES, **SIZES), chip, search=search_options(**options))


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_the_numbers_are_those_of_one_phase(chip: str) -> None:
    low = layers(chip)
    assert low.candidates[0].schedule.parted == "operand-first"
    rng = np.random.default_rng(5)
    given = {t.name: rng.integers(-3, 4, t.shape).astype(np.float16) for t in low.kernel.tensors if not t.output}
    hidden = np.maximum(given["X"].astype(np.float64) @ given["A"], 0)
    assert np.array_equal(low.run(given)["Y"], hidden @ given["B"])


@pytest.mark.slow
def test_rows_that_are_computed_are_made_once() -> None:
    low = lower(kernel(ROWS))
    assert low.candidates[0].schedule.parted == "operand-first"
    rng = np.random.default_rng(5)
    given = {t.name: rng.integers(-3, 4, t.shape).astype(np.float16) for t in low.kernel.tensors if not t.output}
    x, g, w = (a.astype(np.float64) for a in given.values())
    assert np.array_equal(low.run(given)["Y"], (x * np.maximum(x.max(axis=1, keepdims=True), 0) + g) @ w)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"without": ("operand-first",)}, {"effort": "none"}])
def test_it_can_be_switched_off(options: dict[str, object]) -> None:
    assert layers(**options).candidates[0].schedule.behind is None


@pytest.mark.slow
def test_explain_shows_both_phases() -> None:
    text = str(explained(layers()))
    assert "operand-first" in text and "tiles of 32 x 64" in text
