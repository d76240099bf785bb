"""What the search decides, and the laws that every schedule keeps."""

from __future__ import annotations

from itertools import product

import pytest
from ortools.sat.python import cp_model

from tests.extract.kernels import CHIP, GATED, ONE_VALUE_TWO_TENSORS, RELU_CAST, TRICKY, graph_made_now, graph_of, pricer
from tile_eg.errors import TileError
from tile_eg.extract import Schedule, extract
from tile_eg.extract.base import Refused, decisions
from tile_eg.extract.beam import Beam
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.exact import Exact
from tile_eg.extract.makespan import makespan
from tile_eg.extract.model import Model
from tile_eg.ops.types import Level

GEMM = """
kernel gemm[M=256, N=256, K=256, BM=128, BN=256, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
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


def ops(schedule: Schedule) -> list[str]:
    return [step.node.op for step, _ in schedule.walk()]


@pytest.mark.slow
def test_a_gemm_stays_on_the_cube_and_leaves_through_the_fixpipe():
    first, *loads, product, last = ops(extract(graph_of(GEMM), CHIP).best)
    assert (first, product, last) == ("ZeroL0C", "MmadAcc", "FixToGM") and all(op.startswith("GmToL1") for op in loads)


def test_the_fixpipe_casts_and_applies_relu():
    best = extract(graph_of(RELU_CAST), CHIP).best
    fix = next(n for n in best.nodes if n.op == "FixToGM")
    assert fix.payload[0] == 1 and fix.rules == ("fixpipe-store-relu-cast",)


def test_loads_of_a_pipelined_loop_get_a_ring():
    best = extract(graph_of(GEMM), CHIP).best
    assert all(s.slots >= 2 for s in best.storages.values() if s.level is Level.L1)


def test_two_zero_accumulators_are_two_storages():
    best = extract(graph_of(GATED), CHIP).best
    assert len([s for s in best.storages.values() if s.level is Level.L0C]) == 2


def test_one_value_stored_to_two_tensors_is_two_stores():
    best = extract(graph_of(ONE_VALUE_TWO_TENSORS), CHIP).best
    assert {s.dst for s, _ in best.walk() if s.node.op == "UBToGM"} == {"C", "D"}


def test_both_vector_cores_share_the_rows():
    best = extract(graph_of(ONE_VALUE_TWO_TENSORS), CHIP).best
    assert {s.share for s in best.storages.values()} == {0}


def test_every_physical_node_knows_the_rule_that_made_it():
    graph = graph_of(GATED)
    unmarked = {n.op for n in graph.nodes if not n.rules}
    assert unmarked <= {"OCons", "ONil", "PLoop", "PNil", "PCons"}


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("name", sorted(TRICKY))
def test_alternatives_differ_in_decisions(name):
    found = extract(graph_of(TRICKY[name]), CHIP)
    assert len({decisions(s.nodes) for s in found.schedules}) == len(found.schedules)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TRICKY))
def test_schedules_come_cheapest_first(name):
    costs = [s.cost for s in extract(graph_of(TRICKY[name]), CHIP).schedules]
    assert costs == sorted(costs)


NESTED = """
kernel nested[M=128, N=256, K=256](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = 1
  shared a: f16[M, 32], b: f16[32, N]
  fragment c: f32[M, N] = 0
  for i in serial(4) {
    for k in pipelined(2) {
      a = A[0, i*64 + k*32]
      b = B[i*64 + k*32, 0]
      c += a @ b
    }
  }
  C[0, 0] = c
}
"""

PANEL = """
kernel panel[M=128, N=64, D=1280](Q: f16[M, D], A: f16[256, D]) -> C: f32[M, 256] {
  grid bx = 1
  shared q: f16[M, D], a: f16[N, D]
  fragment c: f32[M, N]
  q = Q[0, 0]
  for i in serial(2) {
    for k in serial(2) {
      a = A[i*128 + k*64, 0]
      c = q @ a.T
      C[0, i*128 + k*64] = c
    }
  }
}
"""


@pytest.mark.slow
def test_an_accumulator_that_fills_l0c_stays_there_over_two_loops():
    best = extract(graph_of(NESTED), CHIP).best
    assert {s.level for s in best.storages.values()} == {Level.L1, Level.L0C}


@pytest.mark.slow
def test_what_fits_once_is_kept_over_two_loops():
    best = extract(graph_of(PANEL), CHIP).best
    assert [s.region for s, _ in best.walk() if s.node.op == "GmToL1"] in ([0, 2], [0, 0, 2, 2])  # whole, or both in halves


@pytest.mark.slow
@pytest.mark.parametrize("text", [*TRICKY.values(), GEMM, NESTED], ids=[*TRICKY, "gemm", "nested"])
def test_the_solver_and_the_makespan_measure_the_same_time(text):
    graph = graph_of(text)
    model = Model(graph, CHIP, pricer(graph))
    model.cp.minimize(model.time)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    nodes = [n for n in graph.nodes if solver.boolean_value(model.chosen[n.index])]
    assert makespan(graph, CHIP, nodes, model.prices) == pytest.approx(solver.objective_value)


def test_an_operand_that_lives_on_is_never_overwritten():
    graph = graph_of(TRICKY["operand_lives_on"])
    model = Model(graph, CHIP, pricer(graph))
    axpy = next(n for n in graph.nodes if n.op == "VAxpy" and graph.demands[n.cls].share is None)
    give = next(n for n in graph.classes[axpy.children[1]] if n.op == "Give")
    model.cp.add(model.chosen[axpy.index] == 1)
    model.cp.add(model.chosen[give.index] == 1)
    model.minimise_time()
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    nodes = [n for n in graph.nodes if solver.boolean_value(model.chosen[n.index])]
    assert {axpy, give} <= set(build_schedule(graph, nodes, model.prices, CHIP).nodes)  # others have their own


@pytest.mark.slow
def test_one_input_gives_one_output():
    first, second = (extract(graph_made_now(GATED), CHIP).best for _ in range(2))
    assert [s.node.op for s, _ in first.walk()] == [s.node.op for s, _ in second.walk()]
    assert first.addresses == second.addresses


def test_the_exact_optimum_is_that_of_exhaustive_enumeration():
    graph = graph_of(ONE_VALUE_TWO_TENSORS)
    prices = [pricer(graph).price(n) for n in graph.nodes]
    classes = list(graph.classes.values())
    best = min(_times(graph, prices, classes))
    nodes = extract(graph, CHIP).best.nodes
    assert makespan(graph, CHIP, nodes, prices) == best


def _times(graph, prices, classes):
    for pick in product(*classes):
        chosen = {n.cls: n for n in pick}
        reached, stack = {}, [graph.root]
        while stack:
            c = stack.pop()
            if c not in reached:
                reached[c] = chosen[c]
                stack.extend(chosen[c].children)
        try:
            build_schedule(graph, list(reached.values()), prices, CHIP)
        except (Refused, KeyError, RecursionError):
            continue
        yield makespan(graph, CHIP, reached.values(), prices)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gated", "one_value_two_tensors", "relu_cast"])
def test_the_beam_comes_close_to_the_optimum(name):
    graph = graph_of(TRICKY[name])
    prices = [pricer(graph).price(n) for n in graph.nodes]
    exact = Exact().extract(graph, CHIP, pricer(graph), 1).best
    beam = Beam().extract(graph, CHIP, pricer(graph), 1).best
    assert makespan(graph, CHIP, beam.nodes, prices) <= 1.1 * makespan(graph, CHIP, exact.nodes, prices)


@pytest.mark.slow
def test_an_accumulator_that_is_too_large_is_refused_in_bytes_with_a_size_that_fits():
    with pytest.raises(TileError) as caught:
        extract(graph_of(GEMM, BM=256, BN=256), CHIP)
    assert "262,144 bytes of L0C" in caught.value.message and "131,072" in caught.value.message
    assert "'c' at 128x256" in caught.value.help and caught.value.span.line == 5


@pytest.mark.slow
def test_operands_that_are_too_large_are_named_together():
    with pytest.raises(TileError) as caught:
        extract(graph_of(GEMM, BK=2048, K=4096), CHIP)
    assert "of L1" in caught.value.message
    assert [n.split(":")[0] for n, _ in caught.value.notes] == ["b", "a"]


@pytest.mark.slow
def test_the_size_that_is_advised_does_fit():
    with pytest.raises(TileError) as caught:
        extract(graph_of(GEMM, BM=512, BN=512), CHIP)
    rows, cols = caught.value.help.split(" at ")[1].split(",")[0].split(" or ")[-1].split("x")
    assert extract(graph_of(GEMM, BM=int(rows), BN=int(cols)), CHIP).schedules
