"""Loops whose trips the block decides: what they mean, and which ranges a loop may have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.printer import print_kernel
from tile_eg.ir.kernel import For, Kernel
from tile_eg.ir.reference import run_kernel, run_values
from tile_eg.ir.values import Values, reachable
from tile_eg.search.compiler import check_kernel, lower

SUMS = """
kernel sums[M=128, N=512, BM=32, BN=64](X: f32[M, N]) -> Y: f32[M] {{
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, BN]
  fragment l: f32[BM]{start}
  for j in {range} {{
    x = X[bx*BM, j*BN]
    {body}
  }}
  Y[bx*BM] = l
}}
"""


def sums(range: str, body: str = "l = l + rowsum(x)", start: str = " = 1") -> Kernel:
    """Sums of rows over some of eight tiles of columns, by four blocks."""
    return load_text(SUMS.format(range=range, body=body, start=start)).instantiate()


def loop(kernel: Kernel) -> For:
    return next(s for s in kernel.body if isinstance(s, For))


def trips(values: Values) -> list[int]:
    """Of the one loop, in each block."""
    return [values.trips_of(1, block) for block in range(values.blocks)]


def test_a_range_that_the_block_decides_gives_each_block_its_trips():
    values = to_values(sums("pipelined(2*bx + 1)"))
    assert trips(values) == [1, 3, 5, 7] and (values.trips[1], values.fewest[1]) == (7, 1)


def test_the_mean_of_trips_is_that_of_all_blocks():
    assert to_values(sums("serial(2*bx + 1)")).mean_trips(1) == 4


def test_a_range_that_is_the_same_in_all_blocks_is_a_number():
    assert loop(sums("serial(bx, bx + 4)")).count is None and to_values(sums("serial(bx, bx + 4)")).trips == {1: 4}


def test_a_range_that_ends_before_it_starts_has_no_trip():
    assert trips(to_values(sums("serial(2, bx)"))) == [0, 0, 0, 1]


def test_a_loop_starts_where_the_block_says():
    x = np.arange(128 * 512, dtype=np.float32).reshape(128, 512) / 4096
    expected = [1 + x[r, r // 32 * 64 : r // 32 * 64 + 128].sum() for r in range(128)]
    np.testing.assert_allclose(run_kernel(sums("serial(bx, bx + 2)"), {"X": x})["Y"], expected, rtol=1e-5)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(-2, 2), st.integers(-3, 3), st.integers(0, 2), st.integers(0, 1))
def test_values_mean_what_the_statements_do(a, b, c, d):
    kernel = sums(f"serial(min(7, max(0, {d}*bx)), min(8, max({c}, {a}*bx + {b})))")
    x = np.random.default_rng(0).standard_normal((128, 512), np.float32)
    want, got = run_kernel(kernel, {"X": x})["Y"], run_values(to_values(kernel), {"X": x})["Y"]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_what_a_loop_without_a_trip_would_make_is_what_was_there_before():
    kernel = sums("serial(bx // 2)", "l = rowsum(x)")
    x = np.ones((128, 512), np.float32)
    assert run_values(to_values(kernel), {"X": x})["Y"].tolist() == [1] * 64 + [64] * 64


def test_what_only_a_loop_writes_is_not_there_where_it_takes_no_trip():
    with pytest.raises(TileError, match="`l` is read before it is written"):
        check_kernel(sums("serial(bx)", "l = rowsum(x)", ""))


def test_a_window_that_no_trip_may_reach_is_outside_all_the_same():
    with pytest.raises(TileError, match="a window of `X` lies outside"):
        check_kernel(sums("serial(3*bx)"))


@pytest.mark.parametrize("range", ["pipelined(2*bx + 1)", "serial(bx, 3*bx - 1)"])
def test_a_printed_kernel_has_the_same_trips(range):
    again = load_text(print_kernel(sums(range))).instantiate()
    assert loop(again).count == loop(sums(range)).count


def test_where_a_loop_starts_and_ends_go_together():
    """The last tile is the eighth, from wherever a block starts: nothing lies outside, and nothing is cut off."""
    values = to_values(sums("serial(2*bx, 8)"))
    assert trips(values) == [8, 6, 4, 2] and {str(t.vcols) for t in reachable(values) if t.op == "load"} == {"64"}


def test_a_window_is_judged_in_the_trips_that_there_are():
    check_kernel(sums("serial(2*bx, 8)"))


TRIANGLE = """kernel triangle[M=16, N=40](A: f32[M, N]) -> C: f32[M, N] {
  grid b = 2
  shared x: f32[8, N]
  x = A[b*8, 0]
  for i in serial(1, 8) {
    let first = i - 1
    for j in serial(RANGE) { x[i, :] = x[i, :] + x[j, :] * 0.5 }
  }
  C[b*8, 0] = x
}"""


@pytest.mark.slow
@pytest.mark.parametrize(("of", "begins"), [("i", lambda i: 0), ("first, i", lambda i: i - 1)])
def test_how_far_a_loop_goes_may_follow_from_the_one_around_it(of, begins):
    a = np.random.default_rng(0).uniform(-1, 1, (16, 40)).astype(np.float32)
    wanted = a.copy()
    for half in (wanted[:8], wanted[8:]):
        for i in range(1, 8):
            for j in range(begins(i), i):
                half[i] += half[j] * np.float32(0.5)
    ran = lower(load_text(TRIANGLE.replace("RANGE", of)).instantiate()).run({"A": a})
    np.testing.assert_allclose(ran.outputs["C"], wanted, rtol=1e-5)


def test_a_mistake_in_a_loop_that_is_read_trip_by_trip_is_told_once():
    with pytest.raises(TileError) as told:
        load_text(TRIANGLE.replace("RANGE", "i").replace("x[j, :]", "y[j, :]")).instantiate()
    assert str(told.value).count("unknown name `y`") == 1
