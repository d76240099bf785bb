"""An operand that vector cores compute: the same numbers where whole rows of it are made first."""

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
from tile_eg.transforms.operand_first import Operand, behind
from tile_eg.transforms.operand_rows import computed_operand, rows_made

HEAD = """
kernel k[M=40, K=100, N=50, BM=16, BN=16, BK=32](X: f32[M, K], g: f32[K], W: f32[K, N]) -> Y: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared x: f32[BM, BK], v: f32[BK], w: f32[BK, BN], h: f32[BM, BK]
  fragment y: f32[BM, BN] = 0, s: f32[BM] = 0
"""
WITH_SUMS = HEAD + """
  for i in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, i*BK]
    s += rowsum(x)
  }
  for k in pipelined(ceildiv(K, BK)) {
    x = X[bx*BM, k*BK]
    v = g[k*BK]
    h = x * s[:, None] + v[None, :]
    w = W[k*BK, by*BN]
    y += h @ w
  }
  Y[bx*BM, by*BN] = y
}
"""
ELEMENTS = WITH_SUMS.replace("    s += rowsum(x)\n", "    s = 3\n")
CHOICE = "parallel (i, j) in (BM, BK) { h[i, j] = select(k*BK + j <= bx*BM + i, x[i, j], 0) }"
POSITIONS = ELEMENTS.replace("h = x * s[:, None] + v[None, :]", CHOICE)
RIGHT = ELEMENTS.replace("y: f32[BM, BN]", "y: f32[BN, BM]").replace("y += h @ w", "y += w.T @ h.T").replace(
    "Y: f32[M, N]", "Y: f32[N, M]").replace("Y[bx*BM, by*BN]", "Y[by*BN, bx*BM]")  # fmt: skip
BY_TRIP = ELEMENTS.replace("v = g[k*BK]", "v = g[k]")
PLAIN = ELEMENTS.replace("h = x * s[:, None] + v[None, :]", "h = x")
DEEP = PLAIN.replace("    w = W[k*BK, by*BN]\n", "    w = W[k*BK, by*BN]\n    u = w * 2\n").replace(
    "h @ w", "h @ u"
).replace("h: f32[BM, BK]", "h: f32[BM, BK], u: f32[BK, BN]")
ALONE = WITH_SUMS.replace("N=50", "N=16")


def of(k: Kernel) -> Operand:
    found = computed_operand(to_values(k))
    assert found is not None
    return found


@pytest.mark.slow
@settings(max_examples=16, deadline=None)
@given(
    st.integers(1, 60), st.integers(1, 100), st.integers(17, 70), st.sampled_from([WITH_SUMS, ELEMENTS, POSITIONS, RIGHT]),
    st.sampled_from([1, 2, 4]),
)  # fmt: skip
def test_two_phases_have_the_meaning_of_the_whole(m: int, k: int, n: int, text: str, panels: int) -> None:
    source = kernel(text, M=m, K=k, N=n)
    given_, operand = whole_numbers(source), of(source)
    (rows,) = rows_made(operand, (panels,))
    first = run_values(rows, given_)
    assert np.array_equal(run_values(behind(operand), given_ | first)["Y"], meaning(source, given_)["Y"])


def test_a_block_has_the_columns_of_all_trips() -> None:
    operand = of(kernel(WITH_SUMS))
    (rows,) = rows_made(operand, (4,))
    assert rows.blocks == 12
    assert next(iter(rows.outputs)).args[3].cols == 128


def test_what_each_trip_takes_another_number_for_has_no_whole_rows() -> None:
    assert not list(rows_made(of(kernel(BY_TRIP)), (1, 2)))


@pytest.mark.parametrize("text", [PLAIN, ALONE, DEEP], ids=["only loaded", "each block makes another", "summed over rows"])
def test_what_stays_as_it_is(text: str) -> None:
    assert computed_operand(to_values(kernel(text))) is None
