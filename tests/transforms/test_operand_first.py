"""An operand that is a product: the same numbers where it is made first, each tile once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extract.kernels import kernel
from tests.transforms.test_split_k import whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference_values import run_values
from tile_eg.search.compiler import meaning
from tile_eg.transforms.operand_first import Operand, behind, made, operand_of

LAYERS = """
kernel layers[M=40, K=24, H=100, N=50, BM=16, BN=16, BH=32, BK=16](X: f32[M, K], A: f32[K, H], B: f32[H, N]) -> Y: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared x: f32[BM, BK], a: f32[BK, BH], b: f32[BH, BN], h: f32[BM, BH]
  fragment y: f32[BM, BN] = 0, s: f32[BM, BH]
  for j in pipelined(ceildiv(H, BH)) {
    s = 0
    for k in pipelined(ceildiv(K, BK)) {
      x = X[bx*BM, k*BK]
      a = A[k*BK, j*BH]
      s += x @ a
    }
    h = max(s, 0)
    b = B[j*BH, by*BN]
    y += h @ b
  }
  Y[bx*BM, by*BN] = y
}
"""
TURNED = (
    LAYERS.replace("b: f32[BH, BN], h: f32[BM, BH]", "b: f32[BN, BH], h: f32[BH, BM]")
    .replace("s: f32[BM, BH]", "s: f32[BH, BM]")
    .replace("x: f32[BM, BK], a: f32[BK, BH]", "x: f32[BK, BM], a: f32[BH, BK]")
    .replace("X: f32[M, K], A: f32[K, H], B: f32[H, N]", "X: f32[K, M], A: f32[H, K], B: f32[N, H]")
    .replace("x = X[bx*BM, k*BK]", "x = X[k*BK, bx*BM]")
    .replace("a = A[k*BK, j*BH]", "a = A[j*BH, k*BK]")
    .replace("s += x @ a", "s += a @ x")
    .replace("b = B[j*BH, by*BN]", "b = B[by*BN, j*BH]")
    .replace("y += h @ b", "y += b @ h")
    .replace("y: f32[BM, BN]", "y: f32[BN, BM]")
    .replace("Y: f32[M, N]", "Y: f32[N, M]")
    .replace("Y[bx*BM, by*BN]", "Y[by*BN, bx*BM]")
)
STATEFUL = (
    LAYERS.replace("H=100", "H=128")
    .replace("h = max(s, 0)", "t = t + s\n    h = t")
    .replace("s: f32[BM, BH]", "s: f32[BM, BH], t: f32[BM, BH] = 0")
)
ALONE = LAYERS.replace("N=50", "N=16")


def of(k: Kernel) -> Operand:
    found = operand_of(to_values(k))
    assert found is not None
    return found


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 100), st.integers(17, 70), st.sampled_from([LAYERS, TURNED]))
def test_two_phases_have_the_meaning_of_the_whole(m: int, k: int, h: int, n: int, text: str) -> None:
    source = kernel(text, M=m, K=k, H=h, N=n)
    given_, operand = whole_numbers(source), of(source)
    first = run_values(made(operand), given_)
    assert np.array_equal(run_values(behind(operand), given_ | first)["Y"], meaning(source, given_)["Y"])


def test_each_tile_of_the_operand_has_a_block() -> None:
    operand = of(kernel(LAYERS))
    assert operand.tensor.shape == (48, 128)
    assert made(operand).blocks == 12


def test_the_second_phase_has_no_product_but_its_own() -> None:
    assert operand_of(behind(of(kernel(LAYERS)))) is None


@pytest.mark.parametrize("text", [ALONE, STATEFUL], ids=["each block makes another", "by the trips before"])
def test_what_no_other_block_makes_stays(text: str) -> None:
    assert operand_of(to_values(kernel(text))) is None
