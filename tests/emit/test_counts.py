"""Loops whose trips the block decides: their numbers have names, and flags serve every number that occurs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import CHIP, graph_of, kernel
from tile_eg.egraph import Node
from tile_eg.emit import lower
from tile_eg.emit.ascend_c.kernel import kernel_text
from tile_eg.emit.sync import planning
from tile_eg.emit.sync.check import races
from tile_eg.emit.sync.counts import checked, meeting, usual
from tile_eg.emit.sync.placed import decided_by
from tile_eg.emit.sync.planning import synchronise
from tile_eg.extract import Schedule, extract
from tile_eg.extract.grid import with_grid
from tile_eg.ir.index import const, maximum, var
from tile_eg.ir.program import Let, Loop, Program, Tasks, walk
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.program.tasks import counted_by, inlined
from tile_eg.ir.sizes import Sizes
from tile_eg.search.compiler import meaning, plan, plan_schedule

CAUSAL = """
kernel causal[H=4, S=192, D=32, BM=32, BN=32](Q: f16[H, S, D], K: f16[H, S, D], V: f16[H, S, D]) -> O: f16[H, S, D] {
  grid (bx, h) = (ceildiv(S, BM), H)
  shared   q: f16[BM, D], k: f16[BN, D], v: f16[BN, D], p: f16[BM, BN]
  fragment s: f32[BM, BN], o: f32[BM, D] = 0, l: f32[BM] = 0
  q = Q[h, bx*BM, 0]
  for j in pipelined(bx + 1) {
    k = K[h, j*BN, 0]
    s = exp((q @ k.T) * 0.1)
    l = l + rowsum(s)
    p = s
    v = V[h, j*BN, 0]
    o = o * 0.5 + p @ v
  }
  O[h, bx*BM, 0] = o / l[:, None]
}
"""
BELOW = """
kernel below[M=256, N=128, K=512, BM=64, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared a: f16[BM, BK], b: f16[BK, N]
  fragment c: f32[BM, N] = 0
  for k in pipelined(2*bx) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, 0]
    c += a @ b
  }
  C[bx*BM, 0] = c
}
"""

NO_TRIP_BETWEEN = """program k on 910B2 as AIV_ONLY, blocks 2, workspace 0
tensor A: f32[64, 8]
tensor C: f32[64, 8] output
buffer a: UB f32 8 x 8 nd, pitch 8, slots 1 at 0
buffer b: UB f32 8 x 8 nd, pitch 8, slots 1 at 256
buffer sum: UB f32 8 x 8 nd, pitch 8, slots 1 at 512
buffer q: UB f32 8 x 8 nd, pitch 8, slots 1 at 768
buffer d: UB f32 8 x 8 nd, pitch 8, slots 1 at 0
buffer e: UB f32 8 x 8 nd, pitch 8, slots 1 at 256
cube { }
vector {
  tasks task in 4 until 4, tile to 7 = (block + (task * 2)), trips to 3 = (tile % 4) {
    vdup sum : 8 x 8
    gm_to_ub q <- A{0 : 8} : 8 x 8
    for j in 3 until trips {
      vadd sum <- sum, q : 8 x 8
      vdup d : 8 x 8
      vadd sum <- sum, d : 8 x 8
      gm_to_ub a <- A{(j * 8) : 8} : 8 x 8
      vadd sum <- sum, a : 8 x 8
      vdup e : 8 x 8
      vadd sum <- sum, e : 8 x 8
      gm_to_ub b <- A{(j * 8) : 8} : 8 x 8
      vadd sum <- sum, b : 8 x 8
    }
    vdup d : 8 x 8
    vadd sum <- sum, d : 8 x 8
    vdup e : 8 x 8
    vadd sum <- sum, e : 8 x 8
    ub_to_gm C{(tile * 64) : 8} <- sum : 8 x 8
  }
}
"""


@lru_cache
def schedule(text: str) -> Schedule:
    return extract(graph_of(text), CHIP).best


@lru_cache
def program(text: str, blocks: int = 0) -> Program:
    """The best schedule's program; with `blocks`, one whose blocks go through tiles."""
    best = schedule(text)
    if blocks:
        best = with_grid(best, Node(0, "Persistent", -1, (), (blocks, 0, 0), 0, ()), CHIP)
    return plan_schedule(best, CHIP).program


def loops(p: Program) -> list[Loop]:
    return [n for nodes in (p.cube, p.vector) for n in walk(nodes) if isinstance(n, Loop) and not isinstance(n, Tasks)]


@pytest.mark.slow
def test_both_cores_count_by_one_name():
    p = program(CAUSAL)
    assert [let.name for let in p.lets] == ["trips"] and p.lets[0].most == 6
    (until,) = {str(loop.until) for loop in loops(p) if loop.until}
    assert until.startswith("(trips + ")


@pytest.mark.slow
def test_the_name_is_a_local_of_the_text():
    assert "const int32_t trips = block % 6 + 1;" in kernel_text(program(CAUSAL))


def test_a_tile_of_a_block_that_goes_through_several_has_its_own_number():
    tasks = next(n for n in program(CAUSAL, 5).cube if isinstance(n, Tasks))
    assert str(tasks.lets[-1].value) == "((tile % 6) + 1)" and not program(CAUSAL, 5).lets


@pytest.mark.parametrize("blocks", [0, 5])
def test_a_program_is_read_back_with_its_names(blocks):
    assert parse_program(str(program(CAUSAL, blocks))) == program(CAUSAL, blocks)


def test_inlined_programs_have_no_names():
    assert not counted_by(inlined(program(CAUSAL))) and not counted_by(inlined(program(CAUSAL, 5)))


@pytest.mark.parametrize("trips", range(1, 7))
def test_flags_serve_every_number_of_trips_that_occurs(trips):
    assert races(program(CAUSAL), {"trips": (trips,)}) == []


@pytest.mark.slow
@pytest.mark.parametrize("trips", range(6))
def test_flags_serve_a_loop_that_takes_no_trip_in_some_blocks(trips):
    assert races(program(CAUSAL.replace("bx + 1", "bx")), {"trips": (trips,)}) == []


def test_flags_that_need_a_trip_are_seen_where_there_is_none():
    assert races(program(CAUSAL), {"trips": (0,)})


@pytest.mark.parametrize("trips", [(1, 6, 2), (6, 1, 1), (3, 4, 2, 6)])
def test_flags_serve_tiles_of_different_numbers_one_after_the_other(trips):
    assert races(program(CAUSAL, 5), {"trips": trips}) == []


def test_what_a_loop_leaves_behind_needs_no_flag_that_tiles_without_trips_could_set_twice():
    p = synchronise(parse_program(NO_TRIP_BETWEEN))
    assert races(p, {"trips": (0, 0, 3, 0, 1, 0, 0, 2)}) == []


def test_a_flag_too_few_is_found():
    p = program(CAUSAL)
    loop = next(n for n in p.cube if isinstance(n, Loop))
    assert races(replace(p, cube=tuple(replace(n, until=n.until - 3) if n is loop else n for n in p.cube)), {"trips": (4,)})  # type: ignore[operator]


def test_every_number_that_occurs_is_checked_where_they_are_few():
    assert sorted(counts["trips"][0] for _, counts in checked(program(CAUSAL))) == [1, 2, 3, 4, 5, 6]


def test_a_block_with_tiles_is_checked_with_all_numbers_in_turn():
    tiles, counts = next(iter(checked(program(CAUSAL, 5))))
    assert sorted(counts["trips"]) == [1, 2, 3, 4, 5, 6] and tiles == 7


def test_where_sizes_count_the_tiles_numbers_of_no_usual_tile_are_checked_too():
    sized = replace(program(CAUSAL, 5), sizes=Sizes((("S", 192),), const(24), (const(6), const(4)), ()))
    assert max(max(counts["trips"]) for _, counts in checked(sized)) > 6
    assert decided_by(sized) != decided_by(program(CAUSAL, 5))


def test_a_block_with_tiles_is_checked_with_the_least_number_again_and_again():
    _, (tiles, counts) = checked(program(CAUSAL, 5))
    assert counts["trips"] == (1,) and tiles > 2


def test_a_number_that_is_a_constant_is_looked_at_alone_also_where_no_tile_has_a_name():
    constant = NO_TRIP_BETWEEN.replace("trips to 3 = (tile % 4)", "trips to 3 = 2")
    for text in (constant, constant.replace(", tile to 7 = (block + (task * 2))", "").replace("(tile * 64)", "(task * 64)")):
        assert {counts["trips"] for _, counts in checked(parse_program(text))} == {(2,)}


def test_flags_are_found_at_a_number_that_shows_the_loop():
    few = replace(program(CAUSAL), lets=(replace(program(CAUSAL).lets[0], most=2),))
    assert usual(few) == {"trips": (3,)}


@pytest.mark.slow
def test_a_program_without_such_loops_is_checked_at_none():
    assert list(checked(program(CAUSAL.replace("pipelined(bx + 1)", "pipelined(6)")))) == []


@pytest.mark.slow
def test_what_may_take_no_trip_does_not_begin_in_l0c():
    assert "loop in L0C" not in str(schedule(BELOW)) and not [s for s, _ in schedule(BELOW).walk() if s.node.op == "ZeroL0C"]


def test_what_takes_a_trip_in_every_block_may_begin_in_l0c():
    assert [s for s, _ in schedule(BELOW.replace("2*bx", "2*bx + 1")).walk() if s.node.op == "ZeroL0C"]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "blocks"), [(CAUSAL, 0), (CAUSAL, 5), (BELOW, 0)], ids=["causal", "causal-tiles", "below"])
def test_the_text_computes_what_the_kernel_means(text, blocks):
    p, k = program(text, blocks), kernel(text)
    arrays = arrays_for(k)
    run = plan(p, CHIP.name).run(arrays)
    run.raise_findings()
    for name, want in meaning(k, arrays).items():
        np.testing.assert_allclose(run[name], want, rtol=2e-3, atol=2e-3)




SUMS = """
kernel sums[M=256, N=512, BM=32, BN=64](X: f32[M, N]) -> (Y: f32[M, N], Z: f32[M]) {{
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, BN]
  fragment m: f32[BM] = 0
{body}
  Z[bx*BM] = m
}}
"""
ONE_AFTER_THE_OTHER = """
  for j in pipelined(bx) {
    x = X[bx*BM, j*BN]
    m = max(m, rowmax(x))
    Y[bx*BM, j*BN] = exp(x)
  }
  for j in pipelined(bx, 8) {
    x = X[bx*BM, j*BN]
    Y[bx*BM, j*BN] = x * 2
  }
"""
ONE_IN_THE_OTHER = """
  for i in serial(bx // 2 + 1) {
    for j in pipelined(bx % 3 + 1) {
      x = X[bx*BM, (i + j)*BN]
      m = m + rowsum(x)
      Y[bx*BM, (i + j)*BN] = x
    }
  }
"""
WINDOW = """
  for j in pipelined(max(0, bx*BM - 64) // BN, ceildiv((bx + 1)*BM, BN)) {
    x = X[bx*BM, j*BN]
    parallel (y, z) in (BM, BN) { x[y, z] = select(bx*BM + y >= j*BN + z and bx*BM + y < j*BN + z + 64, x[y, z], 0) }
    m = m + rowsum(x)
    Y[bx*BM, j*BN] = x
  }
"""


@pytest.mark.slow
@pytest.mark.parametrize("body", [ONE_AFTER_THE_OTHER, ONE_IN_THE_OTHER, WINDOW], ids=["after", "inside", "window"])
def test_loops_that_the_block_counts_compute_what_they_mean(body):
    k = kernel(SUMS.format(body=body))
    arrays = arrays_for(k)
    planned = plan(plan_schedule(extract(graph_of(SUMS.format(body=body)), CHIP).best, CHIP).program, CHIP.name)
    run = planned.run(arrays, strict=False).as_meant(k, arrays)
    run.raise_findings()
    for name, want in meaning(k, arrays).items():
        written = ~np.isnan(want)
        np.testing.assert_allclose(run[name][written], want[written], rtol=2e-3, atol=2e-3)


def test_numbers_that_are_not_served_are_analysed_once(monkeypatch: pytest.MonkeyPatch):
    """What a second analysis of the same numbers finds is known, and takes as long again for each."""
    analysed: list[int] = []
    real = planning._plans
    monkeypatch.setattr(planning, "_fault", lambda *_: "a flag is set twice")
    monkeypatch.setattr(planning, "_plans", lambda walks, cases: analysed.append(len(cases)) or real(walks, cases))
    with pytest.raises(planning.SyncError, match="set twice"):
        planning.synchronise(lower.plan(schedule(BELOW), CHIP))
    assert analysed == [1, 2]


def test_of_a_loop_that_goes_on_each_short_tile_is_looked_at_behind_each_that_ends_beside_it() -> None:
    rounds = Let("rounds", (maximum(var("trips"), 3) + 5) // 6 * 6, 12)
    tasks = Tasks("task", 3, (), until=const(3), lets=(rounds,), before=(("trips", "trips_before"),))
    assert set(product((5, 6), (1, 2, 3))) <= set(pairwise(meeting(tasks, 2, list(range(1, 13)))))


def test_numbers_that_are_looked_at_again_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has to be in order there does not depend on the flags that are found."""
    planned: list[planning.Case] = []
    real = planning.plan_of
    monkeypatch.setattr(planning, "plan_of", lambda walks, case, *edges: planned.append(case) or real(walks, case, *edges))
    others = planning._Others(planning.Walks(lower.plan(schedule(BELOW), CHIP)))
    case = (1, usual(others.walks.program))
    assert others.at(case)[0] is others.at(case)[0]
    assert planned == [case]
