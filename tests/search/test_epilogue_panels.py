"""What follows a product in panels of rows: the same numbers, in the simulator too; taken where an epilogue does not fit UB."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.checked import arrays_for, check_numbers
from tests.extract.kernels import CHAIN, GATED, kernel
from tile_eg.chips import load_chip
from tile_eg.egraph import saturate
from tile_eg.extract.base import Extractor
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.exact import Exact
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import reachable
from tile_eg.search import search_options
from tile_eg.search.compiler import lower, meaning
from tile_eg.transforms.epilogue_panels import epilogue_in_panels

GELU = """
kernel gelu[M=150, N=90, K=70, BM=64, BN=64, BK=32](A: f16[M, K], W: f16[K, N], bias: f16[N], R: f16[M, N]) -> Y: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], w: f16[BK, BN], b: f16[BN], r: f16[BM, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    w = W[k*BK, by*BN]
    c += a @ w
  }
  b = bias[by*BN]
  r = R[bx*BM, by*BN]
  c = c + f32(b)[None, :]
  Y[bx*BM, by*BN] = 0.5 * c * (1 + tanh(0.7978845608028654 * (c + 0.044715 * c * c * c))) + f32(r)
}
"""
ROUNDED = GELU.replace("c = c + f32(b)[None, :]", "c = f32(f16(c)) + f32(b)[None, :]")
RELU = GELU.replace("c = c + f32(b)[None, :]", "c = relu(c) + f32(b)[None, :]")
NORM = """
kernel norm[M=40, N=72, K=70, BM=32, BK=32](A: f16[M, K], W: f16[K, N]) -> (H: f16[M, N], Y: f16[M, N], S: f32[M]) {
  grid bx = ceildiv(M, BM)
  shared a: f16[BM, BK], w: f16[BK, N]
  fragment c: f32[BM, N] = 0, s: f32[BM]
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    w = W[k*BK, 0]
    c += a @ w
  }
  H[bx*BM, 0] = exp(c)
  s = rowsum(c * c)
  S[bx*BM] = s
  Y[bx*BM, 0] = c * rsqrt(s / N + 1.0)[:, None]
}
"""
COLUMN_SUMS = NORM.replace("s: f32[BM]", "s: f32[N]").replace("rowsum", "colsum").replace("S[bx*BM] = s", "S[bx*BM] = rowmax(c)")
COLUMN_SUMS = COLUMN_SUMS.replace("rsqrt(s / N + 1.0)[:, None]", "rsqrt(s + 1.0)[None, :]")
TEXTS = {"gelu": GELU, "rounded": ROUNDED, "relu": RELU, "norm": NORM, "column sums": COLUMN_SUMS, "two products": GATED}
LARGE = {"M": 4096, "N": 4096, "K": 1024, "BM": 128, "BN": 256, "BK": 64}
EXTRACTORS: list[Extractor] = [Exact(), Worst(), Random(0), Random(1)]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("panels", [2, 4])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_panels_have_the_meaning_of_the_whole(text: str, panels: int) -> None:
    k = kernel(text)
    parted, arrays = epilogue_in_panels(to_values(k), panels), arrays_for(k)
    assert parted is not None
    want, got = meaning(k, arrays), run_values(parted, arrays)
    for name in want:
        np.testing.assert_allclose(got[name].astype(np.float32), want[name].astype(np.float32), rtol=2e-3, atol=2e-3)


def test_the_product_stays_whole() -> None:
    def products(values) -> list[int]:
        return [t.rows for t in reachable(values) if t.op == "matmul"]

    values = to_values(kernel(GELU))
    parted = epilogue_in_panels(values, 4)
    assert parted is not None and products(parted) == products(values) == [64]
    assert {parted.variables[loop]: parted.variables.get(around) for loop, around in parted.parents.items()} == {
        "k": None,
        "panel": None,
    }


def test_a_kernel_without_a_product_and_a_product_of_what_vector_cores_made_stay_as_they_are() -> None:
    alone = (
        "kernel e[M=64](X: f32[M, 64]) -> Y: f32[M, 64] { grid bx = 1\n shared x: f32[M, 64]\n x = X[0, 0]\n Y[0, 0] = exp(x) }"
    )
    assert epilogue_in_panels(to_values(kernel(alone)), 2) is None
    of_panels = epilogue_in_panels(to_values(kernel(CHAIN)), 2)
    assert of_panels is None or [t.rows for t in reachable(of_panels) if t.op == "matmul"]


@pytest.mark.few(11)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize("extractor", EXTRACTORS, ids=lambda e: e.name + str(getattr(e, "seed", "")))
@pytest.mark.parametrize("text", [GELU, ROUNDED, RELU, NORM], ids=["gelu", "rounded", "relu", "norm"])
def test_every_choice_computes_them(text: str, extractor: Extractor, chip: str) -> None:
    check_numbers(kernel(text), extractor, chip=load_chip(chip), panels=2)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "order"), [(1, (3, 0, 0)), (67, (2, 2, 1)), (130, (3, 0, 0))])
def test_cores_that_go_through_tiles_compute_them_at_any_size(size: int, order: tuple[int, int, int]) -> None:
    check_numbers(kernel(GELU, M=size, N=2 * size, BM=32), Exact(), order, panels=4)


@pytest.mark.slow
def test_rows_are_loaded_from_the_whole_result_in_the_workspace() -> None:
    values = epilogue_in_panels(to_values(kernel(GELU)), 2)
    assert values is not None
    made = {r: n.op for n in saturate(values, load_chip("910B2")).nodes for r in n.rules}
    assert (made["workspace-panel"], made["workspace-ub-panel"]) == ("PanelOf", "WsToUB")


@pytest.mark.long
def test_an_epilogue_that_does_not_fit_is_done_in_panels_and_can_be_switched_off() -> None:
    low = lower(kernel(GELU, **LARGE))
    assert low.form is not None and low.form.moves[0].startswith("epilogue-panels")
    without = lower(kernel(GELU, **LARGE), search=search_options(without=["epilogue-panels"]))
    assert low.cost.microseconds < 0.8 * without.cost.microseconds
