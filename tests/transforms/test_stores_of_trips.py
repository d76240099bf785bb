"""Loops that store in their trips: in parts along with the sums of the same loop, and as blocks behind them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extract.kernels import kernel
from tests.transforms.test_split_k import whole_numbers
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import reachable
from tile_eg.search.compiler import meaning
from tile_eg.transforms.split_k import divisible, fits, in_parts
from tile_eg.transforms.stores_of_trips import loop_of_stores, trips_as_blocks

BOTH = """
kernel both[M=40, N=24, BM=4](X: f32[M, N], G: f32[M, N]) -> (D: f32[M, N], S: f32[N], L: f32[1]) {
  grid bx = 1
  shared x: f32[BM, N], g: f32[BM, N]
  fragment d: f32[BM, N], s: f32[N] = 0, t: f32[1] = -inf, r: f32[BM], row: f32[1, BM]
  for k in serial(ceildiv(M, BM)) {
    x = X[k*BM, 0]
    g = G[k*BM, 0]
    d = x * g
    D[k*BM, 0] = d
    s = s + colsum(d)
    r = rowmax(x)
    row = r[None, :]
    t = max(t, rowmax(row))
  }
  S[0] = s
  L[0] = t
}
"""
BEHIND = BOTH.replace("    D[k*BM, 0] = d\n", "").replace(
    "  S[0] = s\n",
    "  S[0] = s\n  for k in serial(ceildiv(M, BM)) {\n    g = G[k*BM, 0]\n    d = g * s[None, :]\n    D[k*BM, 0] = d\n  }\n",
)
SIZES = (st.integers(2, 60), st.integers(1, 40), st.sampled_from([1, 4, 16]), st.data())


def assert_the_same(text: str, m: int, n: int, rows: int, data: st.DataObject) -> None:
    k = kernel(text, M=m, N=n, BM=rows)
    values, given_ = to_values(k), whole_numbers(k)
    trips = divisible(values) or 1
    counts = [s for s in range(2, trips + 1) if fits(trips, s)]
    if not counts:
        return
    parts = in_parts(values, data.draw(st.sampled_from(counts)))
    first = run_values(parts.first, given_)
    got, want = first | run_values(parts.second, given_ | first), meaning(k, given_)
    for name, array in want.items():
        assert np.array_equal(got[name], array), name


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(*SIZES)
def test_what_trips_store_is_stored_by_the_parts(m: int, n: int, rows: int, data: st.DataObject) -> None:
    assert_the_same(BOTH, m, n, rows, data)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(*SIZES)
def test_a_loop_behind_the_sums_that_stores_has_a_block_for_each_trip(m: int, n: int, rows: int, data: st.DataObject) -> None:
    assert_the_same(BEHIND, m, n, rows, data)


def test_a_sum_that_is_one_number_is_read_in_one_transfer() -> None:
    parts = in_parts(to_values(kernel(BEHIND)), 5)
    loads = [t for t in reachable(parts.second) if t.op == "load" and t.args[0].args[0] in parts.first.shared]
    assert {t.args[0].args[0].name: t.cols for t in loads} == {"sums": 24, "sums2": 5}


RUNNING = BOTH.replace("    D[k*BM, 0] = d\n", "").replace("    s = s + colsum(d)\n", "    s = s + colsum(d)\n    D[k, 0] = s\n")
MEETING = BOTH.replace("D[k*BM, 0] = d", "D[k*2, 0] = d")
TWICE = BOTH.replace("D[k*BM, 0] = d", "D[k*BM, 0] = d\n    D[k*BM + 4, 0] = x").replace("D: f32[M, N]", "D: f32[M + 4, N]")
BACKWARDS = BEHIND.replace("D[k*BM, 0] = d", "D[36 - k*BM, 0] = d")


HANGING = {"a running sum": RUNNING, "rows of two trips": MEETING, "stored twice": TWICE, "backwards": BACKWARDS}


@pytest.mark.parametrize("text", HANGING.values(), ids=HANGING)
def test_trips_that_hang_on_each_other_stay_in_one_block(text: str) -> None:
    assert divisible(to_values(kernel(text))) is None


COLUMNS = """
kernel columns[M=8, N=96, BN=32](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = 1
  shared x: f32[M, BN]
  for k in serial(ceildiv(N, BN)) {
    x = X[0, k*BN]
    Y[0, k*BN] = x * 2
  }
}
"""


@pytest.mark.parametrize("n", [64, 90, 96])
def test_trips_that_store_columns_may_be_blocks(n: int) -> None:
    k = kernel(COLUMNS, N=n)
    values = to_values(k)
    given_ = whole_numbers(k)
    assert trips_as_blocks(values).blocks == -(-n // 32)
    assert np.array_equal(run_values(trips_as_blocks(values), given_)["Y"], meaning(k, given_)["Y"])


def test_a_number_that_all_blocks_would_store_leaves_the_trips_in_one_block() -> None:
    text = BEHIND.replace("L: f32[1])", "L: f32[1], Z: f32[N])").replace("  L[0] = t", "  L[0] = t\n  z = 2\n  Z[0] = z")
    text = text.replace("r: f32[BM]", "r: f32[BM], z: f32[N]")
    assert loop_of_stores(to_values(kernel(BEHIND))) is not None
    assert loop_of_stores(to_values(kernel(text))) is None


def test_trips_whose_columns_meet_are_no_blocks() -> None:
    assert loop_of_stores(to_values(kernel(COLUMNS.replace("Y[0, k*BN]", "Y[0, k*16]")))) is None
