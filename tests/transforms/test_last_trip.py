"""The last trip of a loop on its own: the same numbers, whole tiles in all other trips, and where there is nothing to part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extract.kernels import kernel
from tile_eg.frontend.ssa import to_values
from tile_eg.inputs import draw
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import Values, reachable
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning
from tile_eg.transforms.last_trip import with_last_trips_apart

EXAMPLES = Path(__file__).parents[2] / "examples"
ONLINE = (EXAMPLES / "online_softmax.tile").read_text()
ENTROPY = (EXAMPLES / "norms" / "cross_entropy.tile").read_text()
STORED = """
kernel stored[M=8, N=200, BM=4, BN=64](X: f32[M, N]) -> (Y: f32[M, N], S: f32[M]) {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, BN]
  fragment s: f32[BM] = 0
  for j in serial(ceildiv(N, BN)) {
    x = X[bx*BM, j*BN]
    s = s + rowsum(x) * (j + 1)
    Y[bx*BM, j*BN] = x * 2 + j
  }
  S[bx*BM] = s
}
"""


def parted(text: str, **sizes: int) -> tuple[Values, Values]:
    values = to_values(kernel(text, **sizes))
    apart = with_last_trips_apart(values)
    assert apart is not None
    return values, apart


def agree(values: Values, apart: Values) -> None:
    random = np.random.default_rng(5)
    arrays = {t.name: random.uniform(-1, 1, t.shape).astype(t.dtype.numpy) for t in values.tensors if not t.output}
    want, got = run_values(values, arrays), run_values(apart, arrays)
    assert want and all(np.array_equal(want[name], got[name]) for name in want)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(65, 400), st.integers(2, 9), st.sampled_from([64, 128]))
def test_a_loop_with_its_last_trip_apart_computes_the_same(cols: int, rows: int, width: int) -> None:
    values = to_values(kernel(ONLINE, M=rows, N=cols, BM=4, BN=width))
    apart = with_last_trips_apart(values)
    if apart is None:
        assert cols % width == 0 or cols < width
    else:
        agree(values, apart)


def test_stores_states_and_the_loop_variable_go_on_in_the_last_trip() -> None:
    agree(*parted(STORED))


def test_a_loop_of_two_trips_is_no_loop_any_more() -> None:
    values, apart = parted(STORED, N=100)
    assert values.trips and not apart.trips
    agree(values, apart)


def test_the_tiles_of_all_other_trips_are_whole() -> None:
    _, apart = parted(ONLINE, M=8, N=300, BM=4, BN=128)
    loads = [t for t in reachable(apart) if t.op == "load"]
    assert {t.vcols.value for t in loads if t.vcols is not None} == {128, 300 - 2 * 128}


@pytest.mark.parametrize("sizes", [{"M": 8, "N": 256, "BM": 4, "BN": 128}, {"M": 8, "N": 300, "BM": 1, "BN": 128}])
def test_whole_tiles_and_single_rows_stay_in_their_loop(sizes: dict[str, int]) -> None:
    assert with_last_trips_apart(to_values(kernel(ONLINE, **sizes))) is None


def test_trips_that_the_block_decides_stay_in_their_loop() -> None:
    text = ONLINE.replace("ceildiv(N, BN)", "ceildiv(N, BN) - bx")
    assert with_last_trips_apart(to_values(kernel(text, M=8, N=300, BM=4, BN=128))) is None


def runs(made: Lowered, **how: int) -> None:
    random = np.random.default_rng(0)
    arrays = draw([t for t in made.kernel.tensors if not t.output], "uniform", 0)
    arrays |= {t.name: random.integers(0, 200, t.shape).astype(np.int32) for t in made.kernel.tensors if t.dtype.whole}
    run = made.run(arrays, **how)
    assert not run.findings
    for name, want in meaning(made.kernel, arrays).items():
        np.testing.assert_allclose(run.outputs[name].astype(float), want.astype(float), rtol=2e-3, atol=2e-3)


def entropy(*without: str) -> Lowered:
    return lower(kernel(ENTROPY, M=4096, N=5000, BM=8, BN=1024), search=search_options(without=without))


@pytest.mark.long
def test_columns_that_a_tile_does_not_divide_cost_little_more_than_others() -> None:
    apart, together = entropy(), entropy("last-trip")
    assert apart.form.moves and not together.form.moves
    assert apart.timeline.microseconds < 0.9 * together.timeline.microseconds


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("order", [None, 1])
@pytest.mark.parametrize(("rows", "cols"), [(8, 1100), (40, 5000)])
def test_it_runs_without_a_finding(rows: int, cols: int, order: int | None) -> None:
    options = search_options(without=("whole-rows", "whole-tiles"))  # which make a short trip as good
    made = lower(kernel(ENTROPY, M=rows, N=cols, BM=8, BN=1024), search=options)
    assert made.form.moves == ("last-trip apart",)
    runs(made, **({} if order is None else {"order": order}))
