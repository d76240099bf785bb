"""Two programs as one launch: all cores meet between them, and nothing of one is in the way of the other."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from tests.extract.kernels import CHIP, kernel
from tile_eg.egraph import saturate
from tile_eg.emit.ascend_c import kernel_text
from tile_eg.emit.host import shared_at, workspace_bytes
from tile_eg.emit.phases import CannotMeet, added_up, behind, beside, in_turn, one_launch, without_names
from tile_eg.extract import extract
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.index import BLOCK, less, var
from tile_eg.ir.program import AIC, AIV, Let, Loop, PipeBarrier, Program, SyncAll, When, walk
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.sizes import usual
from tile_eg.search.planning import plan_schedule
from tile_eg.transforms.split_k import added, in_parts

PRODUCT = """
kernel product[M=32, N=64, K=512, BM=32, BN=64, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
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


@lru_cache
def phases(count: int, **sizes: int) -> tuple[Program, Program]:
    parts = in_parts(to_values(kernel(PRODUCT, **sizes)), count, 4)
    first, second = (extract(saturate(v, CHIP), CHIP).best for v in (parts.first, parts.second))
    return plan_schedule(first, CHIP).program, plan_schedule(second, CHIP).program


@lru_cache
def launch() -> Program:
    return one_launch(*phases(4), CHIP)


@pytest.mark.parametrize("core", [AIC, AIV])
def test_every_core_comes_to_the_meeting(core):
    assert sum(isinstance(n, SyncAll) for n in launch().core(core)) == 1


@pytest.mark.parametrize("core", [AIC, AIV])
def test_blocks_that_a_launch_has_not_come_to_its_meeting(core):
    p = one_launch(launch(), replace(phases(4)[0], blocks=8), CHIP)
    assert sum(isinstance(n, SyncAll) for n in p.core(core)) == 2


@pytest.mark.slow
def test_blocks_that_a_phase_has_not_are_left_out_of_it():
    p = one_launch(*phases(8), CHIP)
    (guarded,) = p.vector[1:]
    assert p.blocks == 8
    assert isinstance(guarded, When)
    assert str(guarded.condition) == "(block < 4)"


def test_buffers_of_both_phases_have_names_of_their_own():
    names = [b.name for b in launch().buffers]
    assert len(set(names)) == len(names)


def test_sums_that_all_blocks_share_lie_behind_the_parts_of_the_blocks():
    p = launch()
    start, end = (usual(e) for e in (*shared_at(p)[0].values(), shared_at(p)[1]))
    assert start >= p.workspace * p.blocks
    assert end == workspace_bytes(p) == start + 4 * 4 * 32 * 64


def test_the_text_says_where_all_cores_meet():
    assert kernel_text(launch()).count("AscendC::SyncAll<false>();") == 2


def test_a_launch_of_two_phases_reads_back_as_it_was_printed():
    assert parse_program(str(launch())) == launch()


@pytest.mark.slow
def test_more_blocks_than_cores_cannot_meet():
    with pytest.raises(CannotMeet, match="do not all run at a time"):
        one_launch(*phases(4, M=256), CHIP)


# ---- one program behind another one -----------------------------------------------------------------------------------------


def program(text: str) -> Program:
    return plan_schedule(extract(saturate(to_values(kernel(text, M=256, K=8192)), CHIP), CHIP).best, CHIP).program


@pytest.mark.slow
def test_what_comes_behind_on_the_same_cores_waits_for_all_pipes_and_has_names_of_its_own():
    first = program(PRODUCT)
    p = behind(first, first)
    at = next(k for k, n in enumerate(p.cube) if isinstance(n, PipeBarrier))
    before, after = ({n.var for n in walk(part) if isinstance(n, Loop)} for part in (p.cube[:at], p.cube[at:]))
    assert p.cube[at] == PipeBarrier("ALL") and before and after and not before & after
    assert len({b.name for b in p.buffers}) == len(p.buffers) == 2 * len(first.buffers)


@pytest.mark.slow
@pytest.mark.parametrize("workspace", [0, 512])
def test_cores_meet_before_what_writes_a_workspace_that_vector_cores_may_still_read(workspace):
    first = replace(phases(4)[0], kernel_type="MIX_AIC_1_2", halves=True, vector=(PipeBarrier("ALL"),), workspace=512, shared=())
    second = replace(phases(4)[0], workspace=workspace, shared=())
    assert any(isinstance(n, SyncAll) for n in in_turn(first, second, 0, CHIP).cube) == bool(workspace)


def test_what_needs_vector_cores_cannot_come_behind():
    with pytest.raises(CannotMeet, match="not work for the cube cores"):
        behind(program(PRODUCT), program(PRODUCT.replace("= c\n}", "= exp(c)\n}")))


@pytest.mark.slow
def test_names_of_one_program_are_written_out_in_another_ones_place():
    p = replace(program(PRODUCT), lets=(Let("twice", var(BLOCK) * 2, 4),))
    named = replace(p, cube=(When(less(var("twice"), 2), p.cube),))
    assert str(without_names(named).cube[0].condition) == "((block * 2) < 2)" and not without_names(named).lets


@pytest.mark.slow
def test_loops_of_cores_beside_each_other_have_names_of_their_own():
    cube, vector = program(PRODUCT), phases(4)[1]
    both = beside(cube, vector, CHIP)
    variables = [{n.var for n in walk(both.core(core)) if isinstance(n, Loop)} for core in (AIC, AIV)]
    assert variables[0].isdisjoint(variables[1])


# ---- parts that are added up where they are stored --------------------------------------------------------------------------


@lru_cache
def adding(count: int = 4) -> Program:
    values = added(to_values(kernel(PRODUCT.replace("C: f16", "C: f32"))), count)
    return plan_schedule(extract(saturate(values, CHIP), CHIP).best, CHIP).program


@pytest.mark.slow
def test_the_first_parts_are_stored_and_the_others_added_behind_the_meeting():
    *before, meeting, others = added_up(adding(), 1).cube
    stored = next(n for n in before if isinstance(n, When))
    assert isinstance(meeting, SyncAll)
    assert [str(w.condition) for w in (stored, others)] == ["(block < 1)", "(0 < block)"]
    assert [w.body[0].atomic for w in (stored, others)] == ["", "add"]


def test_what_is_stored_before_it_is_added_to_need_not_be_there():
    assert adding().added_to == {"C"}
    assert not added_up(adding(), 1).added_to


def test_sums_that_do_not_leave_the_cube_cores_at_the_end_cannot_be_added_up():
    with pytest.raises(CannotMeet, match="do not leave the cube cores at the end"):
        added_up(phases(4)[1], 1)
