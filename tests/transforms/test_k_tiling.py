"""Deeper forms of loops of products: which loops have them, and index expressions that cover the same elements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extract.kernels import FIBONACCI, GATED, graph_of, kernel
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.ssa.extents import inside
from tile_eg.ir.index import const, evaluate, maximum, minimum, mod, var
from tile_eg.transforms.k_tiling import Tiling, with_k_tilings

GEMM = """
kernel gemm[M=64, N=64, K=112, BK=16](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared   a: f16[M, BK], b: f16[BK, N]
  fragment c: f32[M, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[0, k*BK]
    b = B[k*BK, 0]
    c += a @ b
  }
  C[0, 0] = c
}
"""

PANELS = st.tuples(st.integers(2, 9), st.integers(2, 9), st.integers(1, 20), st.integers(0, 30))


def tiling(before: int, factor: int) -> Tiling:
    return Tiling(1, 2, factor, before, "k", "deep")


@pytest.mark.slow
@given(PANELS, st.integers(1, 5), st.data())
def test_a_panel_holds_what_its_tiles_hold(shape, stride, data):
    before, factor, size, base = shape
    t = tiling(before, min(factor, before))
    total = data.draw(st.integers((before - 1) * size + 1, before * size))
    valid = inside(var("k") * size, size, total, {"k": (0, before - 1)})
    step, start = t.later(var("k") * (size * stride) + base)
    wide = t.wider(valid, size)
    tiles = {evaluate(start_of_tile(size * stride, base), {"k": k}) + i * stride
             for k in range(before) for i in range(evaluate(valid, {"k": k}))}  # fmt: skip
    panels = {evaluate(start, {"deep": k}) + i * stride for k in range(t.trips) for i in range(evaluate(wide, {"deep": k}))}
    assert step == size * stride and tiles == panels


def start_of_tile(step: int, base: int):
    return var("k") * step + base


@given(PANELS)
def test_a_panel_is_never_larger_than_its_tiles_together(shape):
    before, factor, size, _ = shape
    t = tiling(before, min(factor, before))
    wide = t.wider(minimum(size, before * size - 1 - var("k") * size), size)
    assert wide is None or all(0 < evaluate(wide, {"deep": k}) <= t.factor * size for k in range(t.trips))


def test_an_offset_that_jumps_has_no_deeper_form():
    assert tiling(8, 2).later(mod(var("k"), const(3)) * 16) is None


def test_an_extent_that_is_short_before_the_last_trip_has_no_wider_form():
    assert tiling(8, 2).wider(maximum(0, minimum(16, 100 - var("k") * 16)), 16) is None
    assert tiling(8, 2).wider(minimum(16, 100 - var("k") * 16), 16) is None


def test_a_loop_of_products_gets_two_four_and_all_trips_as_one():
    _, tilings = with_k_tilings(to_values(kernel(GEMM)))
    assert [(t.factor, t.trips) for t in tilings] == [(2, 4), (4, 2), (7, 1)]


def test_every_state_of_a_loop_moves_to_its_deeper_form():
    _, tilings = with_k_tilings(to_values(kernel(GATED)))
    assert [t.factor for t in tilings] == [2, 4]


def test_a_loop_whose_states_are_no_sums_of_products_stays_as_it_is():
    values = to_values(kernel(FIBONACCI))
    assert with_k_tilings(values) == (values, [])


@pytest.mark.slow
def test_the_graph_offers_every_form_of_the_loop():
    graph = graph_of(GEMM)
    forms = {graph.trips[n.payload[0]] for n in graph.nodes if n.op == "PLoop"}
    assert forms == {7, 4, 2} and any(n.op == "GmToL1" and not n.region for n in graph.nodes)


@given(PANELS)
def test_a_load_that_brings_several_tiles_brings_all_that_is_valid_of_them(shape):
    before, factor, size, short = shape
    t = tiling(before, min(factor, before))
    total = before * size - min(short, size - 1)
    valid = inside(var("k") * size, size, total, {"k": (0, before - 1)})
    for k in range(0, before, t.factor):
        tiles = sum(evaluate(valid, {"k": i}) for i in range(k, min(before, k + t.factor)))
        assert evaluate(t.ahead(valid, size), {"k": k}) == tiles


LONG = GEMM.replace("K=112", "K=1024")


@pytest.mark.slow
def test_a_long_loop_may_load_the_tiles_of_several_trips_of_the_operand_whose_rows_grow():
    loads = [n for n in graph_of(LONG).nodes if n.op == "GmToL1Coarsened"]
    assert {n.payload[2] for n in loads} == {"A"}


def test_loads_of_several_trips_divide_the_loop_and_are_several():
    graph = graph_of(LONG)
    loads = [(graph.trips[n.region], n.payload[0]) for n in graph.nodes if n.op == "GmToL1Coarsened"]
    assert loads and all(trips % n == 0 and trips > n for trips, n in loads)


def test_a_loop_of_two_trips_has_no_loads_of_several_of_them():
    graph = graph_of(GEMM.replace("K=112", "K=32"))
    assert not [n for n in graph.nodes if n.op == "GmToL1Coarsened"]


@pytest.mark.slow
@pytest.mark.parametrize("depth", [8, 24, 40])
def test_tiles_that_are_no_whole_fractals_are_loaded_trip_by_trip(depth):
    graph = graph_of(LONG.replace("BK=16", f"BK={depth}"))
    assert not [n for n in graph.nodes if n.op == "GmToL1Coarsened"]
