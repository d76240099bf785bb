"""Loads that bring the tiles of several trips: what they do to a schedule and its program, and that the numbers are right."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model

from tests.extract.checked import check_numbers
from tests.extract.kernels import CHIP, graph_of, kernel
from tests.rules.test_implements import Using, made_by
from tile_eg.cost_models import search_model
from tile_eg.emit.lower import plan
from tile_eg.extract.model import Model
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.schedule import Schedule
from tile_eg.ir.program import Instr, Loop, walk
from tile_eg.ops.types import Level

GEMM = """
kernel gemm[M=192, N=64, K=1024, BM=64, BK=32](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared   a: f16[BM, BK], b: f16[BK, N]
  fragment c: f32[BM, N] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, 0]
    c += a @ b
  }
  C[bx*BM, 0] = c
}
"""
SHORT = GEMM.replace("K=1024", "K=1000")
TRANSPOSED = GEMM.replace("f16[K, N]", "f16[N, K]").replace("f16[BK, N]", "f16[N, BK]")
TRANSPOSED = TRANSPOSED.replace("B[k*BK, 0]", "B[0, k*BK]").replace("a @ b", "a @ b.T")


def best(text: str) -> Schedule:
    graph = graph_of(text)
    return Using("gm-l1-coarsened").extract(graph, CHIP, Pricer(graph, CHIP, search_model("analytic", CHIP)), 1).best


@pytest.mark.slow
def test_what_is_brought_for_several_trips_has_room_for_them_twice():
    schedule = best(GEMM)
    (ahead,) = [s for s in schedule.storages.values() if s.ahead > 1]
    (load,) = [n for n in schedule.nodes if n.op == "GmToL1Coarsened"]
    assert (ahead.rows, ahead.cols) == (64, schedule.graph.demands[load.cls].tile.cols * load.payload[0])
    assert ahead.slots >= 2


def test_the_ring_beside_it_has_three_slots():
    beside = [s for s in best(GEMM).storages.values() if s.level is Level.L1 and s.ahead == 1]
    assert [s.slots for s in beside] == [3]


def test_its_loop_becomes_one_over_these_loads_and_one_over_the_trips():
    schedule = best(GEMM)
    outer = next(n for n in plan(schedule, CHIP).cube if isinstance(n, Loop))
    load, inner = outer.body
    assert isinstance(load, Instr) and load.op == "gm_to_l1"
    assert isinstance(inner, Loop) and outer.trips * inner.trips == next(x.trips for x in schedule.top if hasattr(x, "trips"))


@pytest.mark.slow
def test_its_loops_have_names_of_their_own():
    inner = GEMM[GEMM.index("  for k in") : GEMM.index("  C[")]
    schedule = best(GEMM.replace(inner, f"  for k_by4_in in serial(2) {{\n{inner}  }}\n"))
    names = [n.var for n in walk(plan(schedule, CHIP).cube) if isinstance(n, Loop)]
    assert "k_by4_in" in names and "k_by4_panel" in names and len(names) == len(set(names))


def test_its_price_is_shared_by_the_trips():
    graph = graph_of(GEMM)
    pricer = Pricer(graph, CHIP, search_model("analytic", CHIP))
    longer = made_by(graph, "gm-l1-coarsened")
    assert longer
    for n in longer:
        plain = next(m for m in graph.classes[n.cls] if m.op == "GmToL1")
        assert pricer.price(n).total < pricer.price(plain).total


@pytest.mark.slow
def test_a_loop_has_one_such_load():
    graph = graph_of(TRANSPOSED)
    model = Model(graph, CHIP, Pricer(graph, CHIP, search_model("analytic", CHIP)))
    first, *others = made_by(graph, "gm-l1-coarsened")
    second = next(n for n in others if n.region == first.region and n.cls != first.cls)
    for n in (first, second):
        model.cp.add(model.chosen[n.index] == 1)
    assert cp_model.CpSolver().solve(model.cp) == cp_model.INFEASIBLE


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("text", [GEMM, SHORT, TRANSPOSED], ids=["whole", "short last trip", "transposed"])
@pytest.mark.parametrize("order", [None, (2, 0, 0)], ids=["a block a tile", "persistent"])
def test_numbers_are_those_of_the_source(text, order):
    check_numbers(kernel(text), Using("gm-l1-coarsened"), order)


COLUMN = GEMM.replace("N=64, K=1024, BM=64, BK=32", "N=1, K=1024, BM=64, BN=32, BK=32").replace("f16[BK, N]", "f16[BK, BN]")
COLUMN = COLUMN.replace("f32[BM, N]", "f32[BM, BN]")
"""Both operands go on by 32 elements a trip: A along its rows, B, of one column, down."""


def test_a_column_does_not_go_on_along_rows_though_it_moves_on_as_they_do():
    assert {n.payload[2] for n in graph_of(COLUMN).nodes if n.op == "GmToL1Coarsened"} == {"A"}
