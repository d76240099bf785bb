"""How tiles go to cores: what the rules offer, which orders are worth a plan, and what the tiles of a block share."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import CHIP, graph_of, kernel
from tile_eg.egraph import Node
from tile_eg.extract import Schedule, extract
from tile_eg.extract.grid import Traffic, orders, shared_by_tiles, with_grid, with_grids
from tile_eg.extract.placing import kept_for_tiles
from tile_eg.ops.types import Level
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning, plan_schedule

GEMM = """
kernel gemm[M=640, N=640, K=256, BM=64, BN=128, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  C[bx*BM, by*BN] = c
}
"""
ROWS = """
kernel rows[M=800, N=64, BM=8](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N]
  x = X[bx*BM, 0]
  Y[bx*BM, 0] = exp(x)
}
"""
NORM = """
kernel norm[M=100, N=72, BM=4](X: f16[M, N], W: f16[N]) -> Y: f16[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f16[BM, N], w: f16[N]
  fragment f: f32[BM, N], s: f32[N], r: f32[BM]
  x = X[bx*BM, 0]
  w = W[0]
  s = w
  f = x
  r = rowsum(f * f)
  Y[bx*BM, 0] = f * r[:, None] * s[None, :]
}
"""
TALL = GEMM.replace("M=640, N=640", "M=4096, N=8192")
SQUARES = """
kernel squares[M=640, N=640, BM=64, BN=64](X: f32[M, N]) -> Y: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared x: f32[BM, BN]
  x = X[bx*BM, by*BN]
  Y[bx*BM, by*BN] = x * x
}
"""


@lru_cache
def best(text: str) -> Schedule:
    return extract(graph_of(text), CHIP, k=1).best


@lru_cache
def lowered(text: str) -> Lowered:
    return lower(kernel(text), CHIP.name, search=search_options(without=("blocks-together",)))


def payloads(text: str) -> set[tuple]:
    """The orders of tiles that are offered."""
    return {(g.op, *g.payload) for g in graph_of(text).grids if g.op != "Parts"}


def grid(blocks: int, window: int = 0, along: int = 0) -> Node:
    return Node(0, "Persistent", -1, (), (blocks, window, along), 0, ())


# ---- what is offered --------------------------------------------------------------------------------------------------------


def test_fewer_tiles_than_cores_leave_no_choice():
    assert payloads(GEMM.replace("M=640", "M=128")) == {("Blocks", 10)}


def test_a_grid_of_one_dimension_has_one_order():
    assert payloads(ROWS) == {("Blocks", 100), ("Persistent", 48, 0, 0), ("Persistent", 24, 0, 0)}


def test_a_grid_of_two_dimensions_has_bands_that_are_narrower_than_it():
    found = payloads(GEMM)
    assert {("Persistent", 24, w, 0) for w in (1, 2, 3, 4, 6, 8)} <= found
    assert {w for _, _, w, along in (p for p in found if p[0] == "Persistent") if along == 1} == {2, 3, 4}


def test_every_grid_names_its_rule():
    rules = {r for g in graph_of(GEMM).grids for r in g.rules}
    assert rules == {"block-a-tile", "persistent", "bands-across", "bands-down", "operand-in-strips"}


def test_only_as_many_blocks_as_run_at_a_time_are_tried():
    assert {g.payload[0] for g in orders(best(ROWS), CHIP, 48)} == {48}


@pytest.mark.slow
def test_the_grids_own_order_is_always_tried():
    assert (24, 0, 0) in [g.payload for g in orders(best(TALL), CHIP, 24)]


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 1, 3])
def test_no_more_orders_are_tried_than_asked_for(most):
    assert len(orders(best(TALL), CHIP, 24, most)) == most


def test_an_order_that_brings_nothing_is_not_tried():
    assert len(orders(best(SQUARES), CHIP, 48)) == 1 and len(orders(best(SQUARES), CHIP, 48, None)) > 3


# ---- what an order costs ----------------------------------------------------------------------------------------------------


def test_bands_are_quicker_where_l2_forgets():
    traffic = Traffic(best(TALL), replace(CHIP, l2_bytes=4_000_000))
    assert traffic.cost(grid(24, 4))[0] < 0.7 * traffic.cost(grid(24))[0]


def test_a_line_that_all_cores_read_at_a_time_costs_more_than_one_that_few_read():
    traffic = Traffic(best(TALL), CHIP)
    assert traffic.cost(grid(24, 4))[0] < traffic.cost(grid(24))[0]


def test_tiles_of_one_time_that_lie_in_a_square_ask_for_least():
    traffic = Traffic(best(TALL), CHIP)
    asked = {w: traffic.cost(grid(16, w))[1] for w in (0, 1, 2, 4, 8)}
    assert min(asked, key=asked.__getitem__) == 4 and asked[0] > asked[8]


# ---- what a schedule becomes ------------------------------------------------------------------------------------------------


def test_the_schedule_of_one_tile_stays_as_it_is():
    before = {i: (s.slots, s.ring) for i, s in best(GEMM).storages.items()}
    with_grid(best(GEMM), grid(24), CHIP)
    assert {i: (s.slots, s.ring) for i, s in best(GEMM).storages.items()} == before and best(GEMM).grid is None


def test_a_result_in_l0c_leaves_while_the_next_one_is_made():
    made = with_grid(best(GEMM), grid(24), CHIP)
    assert [(s.slots, s.ring) for s in made.storages.values() if s.level is Level.L0C] == [(2, 0)]


def test_a_result_that_fills_l0c_has_one_place():
    made = with_grid(best(GEMM.replace("BM=64, BN=128", "BM=128, BN=256")), grid(2), CHIP)
    assert [s.slots for s in made.storages.values() if s.level is Level.L0C] == [1]


def test_ub_holds_several_tiles_in_turn():
    made = with_grid(best(ROWS), grid(48), CHIP)
    places = [made.addresses[i] for i, s in made.storages.items() if s.level is Level.UB]
    steps = {b - a for at in places for a, b in zip(at, at[1:], strict=False)}
    assert made.copies == 3 and {len(at) for at in places} == {3} and len(steps) == 1


def test_ub_has_as_many_copies_as_there_is_room_for():
    made = with_grid(best(ROWS.replace("BM=8", "BM=512")), grid(1), CHIP)
    assert made.copies == 2 and 128 * 1024 <= made.peaks[Level.UB] <= CHIP.level_bytes(Level.UB)


# ---- what all tiles share ---------------------------------------------------------------------------------------------------


def test_what_no_tile_changes_is_loaded_and_converted_once():
    found = best(NORM)
    assert sorted(found.storages[i].name for i in shared_by_tiles(found)) == ["s", "w"]


WEIGHTED = """kernel weighted[M=64, N=256, BM=8](X: f32[M, N], W: f32[BM, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N], w: f32[BM, N], s: f32[BM]
  x = X[bx*BM, 0]
  w = W[0, 0]
  s = rowsum(w)
  Y[bx*BM, 0] = x * s[:, None]
}"""


@pytest.mark.slow
def test_a_sum_that_no_tile_changes_is_made_once_with_what_it_keeps_beside():
    found = best(WEIGHTED)
    sums = [s for s, _ in found.walk() if s.scratch is not None]
    assert sums and {i for s in sums for i in (s.dst, s.scratch)} <= shared_by_tiles(found)
    assert {s.scratch for s in sums} & shared_by_tiles(found, scratch=False) == set()
    x, w = (np.random.default_rng(1).integers(-4, 5, (n, 256)).astype(np.float32) for n in (64, 8))
    run = plan_schedule(with_grids(found, grid(2), CHIP)[-1], CHIP).run({"X": x, "W": w}, strict=False)
    assert not run.findings
    np.testing.assert_array_equal(run["Y"], x * np.tile(w.sum(axis=1), 8)[:, None])


def test_a_vector_that_moves_with_the_tile_belongs_to_the_tile():
    moving = NORM.replace("W: f16[N]", "W: f16[M * N]").replace("W[0]", "W[bx*N]")
    assert shared_by_tiles(best(moving)) == frozenset()


def test_what_is_made_once_and_read_by_every_tile_shares_its_place_with_nothing():
    made = with_grids(best(NORM), grid(5), CHIP)[-1]
    kept = kept_for_tiles(made)
    ends = [made.addresses[i][0] + made.storages[i].bytes for i in kept]
    others = [at for i, s in made.storages.items() if s.level is Level.UB and i not in kept for at in made.addresses[i]]
    assert kept and max(ends) <= min(others) and all(len(made.addresses[i]) == 1 for i in made.once)


def test_what_leaves_no_room_is_made_for_every_tile():
    wide = NORM.replace("N=72, BM=4", "N=9472, BM=2")
    assert with_grid(best(wide), grid(5), CHIP).once == frozenset()


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("at", [0, 1], ids=["tiles in turn", "rings"])
def test_what_is_made_once_serves_every_tile(at):
    k = kernel(NORM)
    planned, arrays = plan_schedule(with_grids(best(NORM), grid(5), CHIP)[at], CHIP), arrays_for(kernel(NORM))
    for order in (None, 1):
        got, want = planned.run(arrays, order=order)["Y"], meaning(k, arrays)["Y"]
        np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3)


FILTERED = """kernel filtered[M=960, N=32, K=64, BM=16](A: f16[M, K], B: f16[K - 14, N]) -> C: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared a: f16[BM, K], b: f16[K, N]
  fragment c: f32[BM, N] = 0
  a = A[bx*BM, 0]
  b = pad(B[-5, 0], 0)
  c += a @ b
  C[bx*BM, 0] = exp(c)
}"""


def test_copies_of_ub_follow_each_other_whatever_stays_in_l1():
    made = with_grids(best(FILTERED), grid(20), CHIP)[0]
    in_turn = [made.addresses[i] for i, s in made.storages.items() if s.level is Level.UB and i not in made.once]
    assert made.copies > 1 and Level.L1 in {made.storages[i].level for i in made.once}
    assert in_turn and all(at == tuple(sorted(at)) for at in in_turn)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["gm-l1-padded", "ub-l1", "workspace-l1"])
@pytest.mark.parametrize("stored", ["exp(c)", "c"])
def test_what_stays_in_l1_comes_there_by_any_way(way, stored):
    """Also where the vector cores do nothing else."""
    k = kernel(FILTERED.replace("exp(c)", stored))
    others = {"gm-l1-padded", "ub-l1", "workspace-l1"} - {way}
    found, arrays = lower(k, "950", search=search_options(without=others)), arrays_for(k)
    np.testing.assert_allclose(found.run(arrays)["C"], meaning(k, arrays)["C"], rtol=4e-3, atol=4e-3)


@pytest.mark.slow
def test_what_is_made_once_is_told_apart():
    assert "each of 25 blocks" in str(lowered(NORM).explanation)
    assert "each of 48 blocks, once" in str(lowered(NORM.replace("M=100", "M=400")).explanation)


# ---- what is decided --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_kernel_of_many_tiles_launches_a_block_a_core():
    assert lowered(ROWS).program.blocks == 48


@pytest.mark.slow
def test_one_block_a_tile_is_kept_as_the_runner_up():
    others = [c.microseconds for c in lowered(ROWS).candidates if c.schedule.grid is None]
    assert others and min(others) > lowered(ROWS).candidates[0].microseconds


def test_the_explanation_tells_the_order_of_tiles():
    assert "48 blocks" in str(lowered(ROWS).explanation)


@pytest.mark.slow
def test_a_block_that_two_vector_cores_share_may_go_through_tiles_though_whole_blocks_are_quicker_alone():
    wide = NORM.replace("M=100, N=72, BM=4", "M=32768, N=1024, BM=16")  # two of its tiles fit UB only by halves
    candidates = lowered(wide).candidates
    assert candidates[0].schedule.grid is not None and candidates[0].planned.program.halves
    alone = [c for c in candidates if c.schedule.grid is None]
    assert not alone[0].planned.program.halves


@pytest.mark.slow
def test_few_rows_are_halved_too():
    k = kernel(NORM.replace("M=100, N=72", "M=102, N=72"))  # the last block has two rows
    halved = next(c.planned for c in lower(k, CHIP.name).candidates if c.planned.program.halves)
    for order in (None, 1):
        got, want = halved.run(arrays_for(k), order=order)["Y"], meaning(k, arrays_for(k))["Y"]
        np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3)
