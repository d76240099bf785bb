"""Long rows in tiles of columns: the same numbers, in as few passes as their statistics allow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extract.kernels import GATED, kernel
from tests.transforms.test_split_k import whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference_values import run_values
from tile_eg.transforms.column_tiles import in_columns, sums_in_columns

EXAMPLES = Path(__file__).parents[2] / "examples"
WIDE = {
    name: (EXAMPLES / f"{name}.tile").read_text() for name in ("softmax", "rms_norm", "layer_norm", "gelu_mul")
}  # fmt: skip
SHOWN = """
kernel shown[M=8, N=512, BM=4](X: f32[M, N], V: f32[M], W: f32[N]) -> (Y: f32[M, N], S: f32[M], C: f32[N]) {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N], v: f32[BM], w: f32[N]
  fragment m: f32[BM], s: f32[BM]
  x = X[bx*BM, 0]
  v = V[bx*BM]
  w = W[0]
  m = rowmax(x)
  s = rowmin(x) + m
  parallel (i, j) in (BM, N) { x[i, j] = select(i + 7 >= j, x[i, j] * w[j] + j, v[i]) }
  Y[bx*BM, 0] = x - m[:, None]
  S[bx*BM] = s
}
"""
SHOWN_MAXIMUM = """
kernel shown[M=8, N=512](X: f32[M, N]) -> (Y: f32[M, N], S: f32[M]) {
  grid bx = 1
  shared x: f32[M, N]
  fragment m: f32[M]
  x = X[0, 0]
  m = rowmax(x)
  x = exp(x - m[:, None])
  Y[0, 0] = x / rowsum(x)[:, None]
  S[0] = m
}
"""
STORED_AND_SUMMED = """
kernel both[M=8, N=512](X: f32[M, N]) -> (Y: f32[M, N], S: f32[M]) {
  grid bx = 1
  shared x: f32[M, N]
  x = X[0, 0]
  x = exp(x)
  Y[0, 0] = x
  S[0] = rowsum(x)
}
"""
ADDED = """
kernel added[M=8, N=512](X: f32[M, N]) -> Y: f32[M // 2, N] {
  grid bx = M
  shared x: f32[1, N]
  x = X[bx, 0]
  atomic Y[bx // 2, 0] += x
}
"""
ENDS_ELSEWHERE = """
kernel elsewhere[M=8, N=512, L=100](X: f32[M, L], Z: f32[M, N]) -> (Y: f32[M, N], S: f32[M]) {
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N], z: f32[M, N]
  x = X[0, 0]
  parallel (i, j) in (M, N) { y[i, j] = i + j }
  S[0] = rowmax(x) + rowsum(y)
  Y[0, 0] = y
}
"""
READ_BACK = """
kernel back[M=8, N=512](X: f32[M, N]) -> (Y: f32[M, N], Z: f32[M, N]) {
  grid bx = 1
  shared x: f32[M, N]
  x = X[0, 0]
  Y[0, 0] = x
  x = Y[0, 0]
  Z[0, 0] = x + 1
}
"""


def inputs(k: Kernel, low: float = -1.0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {t.name: random.uniform(low, 1, t.shape).astype(t.dtype.numpy) for t in k.tensors if not t.output}


def agree(k: Kernel, width: int, arrays: dict[str, np.ndarray]) -> None:
    parted = in_columns(to_values(k), width)
    assert parted is not None
    whole, got = run_values(to_values(k), arrays), run_values(parted, arrays)
    for name, array in whole.items():
        unit = 2**-9 if array.dtype == np.float16 else 2**-20
        np.testing.assert_allclose(got[name].astype(float), array.astype(float), rtol=unit, atol=unit)


def passes(text: str, **sizes: int) -> int:
    parted = in_columns(to_values(kernel(text, **sizes)), 64)
    assert parted is not None
    return len(parted.trips)


@pytest.mark.parametrize("name", WIDE)
def test_column_tiles_have_the_meaning_of_whole_rows(name: str) -> None:
    k = kernel(WIDE[name], M=8, N=512, **({"BM": 4, "BN": 512} if name == "gelu_mul" else {"BM": 4}))
    agree(k, 128, inputs(k))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(65, 600), st.integers(1, 9), st.sampled_from([64, 128, 192]))
def test_the_last_tile_may_be_short(cols: int, rows: int, width: int) -> None:
    k = kernel(WIDE["softmax"], M=rows, N=cols, BM=4)
    if width < cols:
        agree(k, width, inputs(k))


def test_positions_row_values_and_column_values_stay_where_they_were() -> None:
    k = kernel(SHOWN.replace(", C: f32[N]", ""))
    agree(k, 64, inputs(k))


@pytest.mark.parametrize(("name", "count"), [("softmax", 2), ("rms_norm", 2), ("layer_norm", 3)])
def test_statistics_take_as_many_passes_as_they_need_of_each_other(name: str, count: int) -> None:
    assert passes(WIDE[name], M=8, N=512, BM=4) == count


def test_a_maximum_that_is_shown_is_folded_before_the_sum_of_its_exponentials() -> None:
    assert passes(SHOWN_MAXIMUM) == 3
    k = kernel(SHOWN_MAXIMUM)
    agree(k, 128, inputs(k))


def test_one_pass_may_fold_and_store() -> None:
    assert passes(STORED_AND_SUMMED) == 1
    k = kernel(STORED_AND_SUMMED)
    agree(k, 128, inputs(k))


@pytest.mark.parametrize("first", [0, 128, 512])
def test_columns_of_minus_infinity_change_nothing(first: int) -> None:
    k = kernel(WIDE["softmax"], M=4, N=512, BM=4)
    arrays = inputs(k)
    arrays["X"][:, :first] = -np.inf
    with np.errstate(invalid="ignore", divide="ignore"):
        agree(k, 128, arrays)


def test_great_numbers_do_not_overflow_in_the_fold() -> None:
    k = kernel(WIDE["softmax"], M=4, N=512, BM=4)
    agree(k, 64, {n: 3e38 * a for n, a in inputs(k).items()})


@pytest.mark.parametrize("text", [GATED, READ_BACK, (EXAMPLES / "online_softmax.tile").read_text()])
def test_products_loops_and_tensors_that_are_read_back_are_left_alone(text: str) -> None:
    assert in_columns(to_values(kernel(text)), 64) is None


def test_rows_that_are_no_longer_than_a_tile_are_left_alone() -> None:
    assert in_columns(to_values(kernel(WIDE["softmax"], N=64)), 64) is None


def test_only_sums_depend_on_the_order_of_columns() -> None:
    assert sums_in_columns(to_values(kernel(WIDE["softmax"])))
    assert not sums_in_columns(to_values(kernel(WIDE["gelu_mul"])))


def test_what_blocks_add_is_added_from_all_columns() -> None:
    k = kernel(ADDED)
    arrays = whole_numbers(k)
    assert np.array_equal(run_values(in_columns(to_values(k), 64), arrays)["Y"], arrays["X"][::2] + arrays["X"][1::2])


def test_positions_beyond_what_is_loaded_are_no_tiles() -> None:
    assert in_columns(to_values(kernel(ENDS_ELSEWHERE)), 64) is None
    assert in_columns(to_values(kernel(ENDS_ELSEWHERE, L=500)), 64) is not None
