"""Unit flags: where a result fills L0C, its blocks go to the fixpipe and back one by one, and the numbers are right."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import CHIP, graph_of, kernel
from tile_eg.egraph import Node
from tile_eg.emit.ascend_c.kernel import kernel_text
from tile_eg.emit.sync.check import races
from tile_eg.extract import extract
from tile_eg.extract.grid import in_halves, with_grid
from tile_eg.extract.schedule import Schedule
from tile_eg.ir.index import ZERO, evaluate, variables
from tile_eg.ir.program import Instr, Loop, Program, SetFlag, WaitFlag, walk
from tile_eg.ir.program.parser import parse_program
from tile_eg.search.compiler import meaning
from tile_eg.search.planned import Planned
from tile_eg.search.planning import plan_schedule
from tile_eg.timeline.engine import run

GEMM = """
kernel gemm[M=384, N=512, K=512, BM=128, BN=256, BK=128](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
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
EXP = GEMM.replace("= c\n}", "= exp(c)\n}")
TAILS = {"M": 300, "N": 400}


@lru_cache
def schedule(text: str = GEMM, halves: bool = False, **sizes: int) -> Schedule:
    best = extract(graph_of(text, **sizes) if sizes else graph_of(text), CHIP).best
    made = with_grid(best, Node(0, "Persistent", -1, (), (2, 0, 0), 0, ()), CHIP)
    return (in_halves(made) or made) if halves else made


@lru_cache
def planned(text: str = GEMM, halves: bool = False, **sizes: int) -> Planned:
    return plan_schedule(schedule(text, halves, **sizes), CHIP)


def instructions(p: Program, op: str) -> list[Instr]:
    return [n for n in walk(p.cube) if isinstance(n, Instr) and n.op == op]


@pytest.mark.slow
def test_no_flag_stands_between_the_product_and_the_fixpipe():
    flags = [n for n in walk(planned().program.cube) if isinstance(n, SetFlag | WaitFlag)]
    assert flags and not [f for f in flags if {f.src, f.dst} == {"M", "FIX"}]


def test_the_last_step_hands_its_blocks_over_and_the_others_keep_them():
    (mmad,) = instructions(planned().program, "mmad")
    loops = {n.var: n.trips for n in walk(planned().program.cube) if isinstance(n, Loop)}
    names = sorted(variables(mmad.unit))
    trips = [{}]
    for name in names:
        trips = [{**t, name: i} for t in trips for i in range(loops[name])]
    flags = [evaluate(mmad.unit, t) for t in trips]
    assert names and flags.count(3) == 1 and flags.count(2) == len(flags) - 1
    assert evaluate(mmad.unit, {name: loops[name] - 1 for name in names}) == 3


def test_a_result_in_halves_leaves_in_halves():
    (out,) = instructions(planned(GEMM, True).program, "fixpipe")
    (whole,) = instructions(planned().program, "fixpipe")
    assert variables(out.srcs[0].col) and not variables(whole.srcs[0].col)


def test_a_block_a_tile_has_flags():
    alone = plan_schedule(extract(graph_of(GEMM), CHIP).best, CHIP).program
    assert {str(i.unit) for i in (*instructions(alone, "mmad"), *instructions(alone, "fixpipe"))} == {"0"}


@pytest.mark.slow
def test_a_depth_whose_last_step_may_be_empty_has_flags():
    alone = planned(GEMM, K=500).program
    assert {str(i.unit) for i in instructions(alone, "mmad")} == {"0"}


def test_the_text_names_the_unit_flags():
    text = kernel_text(planned().program)
    assert ", 0, 1, 0, 0, 3));" in text and "+ 2, false, " in text
    assert text.count("AscendC::SetMMRowMajor();") == 1


def test_a_program_with_unit_flags_reads_back_as_it_was_printed():
    p = planned(GEMM, True).program
    assert parse_program(str(p)) == p


def test_unit_flags_order_what_they_guard():
    assert races(planned().program) == []


def test_without_them_nothing_does():
    def plain(nodes: tuple) -> tuple:
        return tuple(
            replace(n, body=plain(n.body)) if isinstance(n, Loop) else replace(n, unit=ZERO) if isinstance(n, Instr) else n
            for n in nodes
        )

    p = planned().program
    assert any("mmad" in r and "fixpipe" in r for r in races(replace(p, cube=plain(p.cube))))


def test_the_fixpipe_runs_along_with_the_product():
    spans = [s for s in run(planned().program, CHIP, exact=True).spans if s.pipe in ("M", "FIX")]
    out = next(s for s in spans if s.pipe == "FIX")
    assert any(s.pipe == "M" and s.start < out.end and out.start < s.end for s in spans)


def test_a_fixpipe_neither_starts_nor_ends_before_the_last_step():
    spans = run(planned().program, CHIP, exact=True).spans
    out = next(s for s in spans if s.pipe == "FIX")
    last = [s for s in spans if s.pipe == "M" and evaluate(s.instr.unit, s.env) == 3][0]
    assert last.start < out.start and last.end <= out.end


@pytest.mark.slow
def test_halves_of_the_columns_hide_the_fixpipe():
    whole, halves = (run(planned(GEMM, h, M=2048, K=2048).program, CHIP) for h in (False, True))
    assert halves.cycles < whole.cycles


@pytest.mark.slow
@pytest.mark.parametrize("halves", [False, True])
def test_loops_that_are_skipped_take_as_long_as_those_that_are_run(halves):
    p = planned(GEMM, halves, M=1280, K=1024).program
    assert run(p, CHIP).cycles == pytest.approx(run(p, CHIP, exact=True).cycles, rel=1e-6)


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("text", [GEMM, EXP], ids=["to GM", "to the vector cores"])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("sizes", [{}, TAILS], ids=["whole", "tails"])
@pytest.mark.parametrize("order", [None, 1])
def test_numbers_are_those_of_the_source(text, halves, sizes, order):
    k = kernel(text, **sizes)
    arrays = {name: a * np.float16(0.1) for name, a in arrays_for(k).items()}
    ran = planned(text, halves, **sizes).run(arrays, order=order)
    np.testing.assert_allclose(ran["C"], meaning(k, arrays)["C"], rtol=4e-3, atol=4e-3)
