"""Races beyond two neighbouring lines, waits that nothing satisfies, and buffers that overlap: each with both of its places."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import UB, VECTOR_ADD, gm, kernel, run_vector, vector
from tests.simulator.mutants import pairs_of, statement, subject
from tests.simulator.test_cores import BACK, SET, WAIT, fused
from tests.simulator.test_cores import run as run_fused
from tile_eg.report.findings import finding_text
from tile_eg.simulator.run import Finding, Simulation, simulate

pytestmark = pytest.mark.slow(but=3)


def line(source: str, mark: str) -> int:
    return next(i for i, text in enumerate(source.splitlines(), 1) if mark in text)


def only(done: Simulation) -> Finding:
    assert len({(f.kind, f.line, f.other_line) for f in done.findings}) == 1, str(done)
    return done.findings[0]


def run(body: str, elements: int = 256) -> tuple[str, Simulation]:
    source = vector("X Y", body, elements=elements)
    x = np.ones(elements, np.float32)
    return source, run_vector(source, x, x)


def has(body: str, kind: str) -> Finding:
    """The one finding of a body, which is of this kind, at /*1*/, and with the other place at /*2*/ if there is one."""
    source, done = run(body)
    found = only(done)
    other = line(source, "/*2*/") if "/*2*/" in body else 0
    assert (found.kind, found.line, found.other_line) == (kind, line(source, "/*1*/"), other), str(found)
    return found


# ---- races ------------------------------------------------------------------------------------------------------------------


def without(source: str, event: str) -> str:
    """The kernel without the flags of one event, its lines where they were."""
    return "\n".join("" if event in text else text for text in source.splitlines())


def test_a_slot_of_a_ring_is_filled_while_an_earlier_pass_still_uses_it() -> None:
    broken = without(VECTOR_ADD, "MTE3_MTE2")
    a = np.ones(8192, np.float32)
    found = {(f.kind, f.line, f.other_line): f for f in run_vector(broken, a, a, a).findings}
    store = found["race", line(broken, "DataCopy(a,"), line(broken, "DataCopy(gmC")]
    assert "WAR" in store.message
    assert "an earlier pass" in store.message
    assert "SetFlag<HardEvent::MTE3_MTE2>" in store.message


@pytest.mark.slow
def test_a_scalar_write_is_ordered_with_the_vector_pipe_by_flags_only() -> None:
    flag = "SetFlag<HardEvent::S_V>(0); WaitFlag<HardEvent::S_V>(0);\n"
    fill = "Duplicate(x, 1.0f, 64); SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);\nx.SetValue(0, 2.0f); /*2*/\n"
    found = has(fill + "Exp(y, x, 64); /*1*/", "race")
    assert "SetFlag<HardEvent::S_V>" in found.message
    assert run(fill + flag + "Exp(y, x, 64);")[1].ok


def test_a_result_is_overwritten_by_the_scalar_unit_too_early() -> None:
    found = has("Duplicate(x, 1.0f, 64); /*2*/\nx.SetValue(0, 2.0f); /*1*/", "race")
    assert "WAW" in found.message
    assert "SetFlag<HardEvent::V_S>" in found.message


def test_what_the_scalar_unit_has_read_may_be_overwritten() -> None:
    ready = "Duplicate(x, 1.0f, 64); SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);\n"
    assert run(ready + "if (x.GetValue(0) > 0) { PipeBarrier<PIPE_V>(); Duplicate(x, 2.0f, 64); }")[1].ok


def test_a_scalar_read_does_not_hide_a_copy_that_reads_the_same() -> None:
    body = "DataCopy(x, gmY, 64); /*2*/\nif (gmY.GetValue(0) > 0) Duplicate(y, 1.0f, 64);\n"
    source = vector("X Y", body + "SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);\nDataCopy(gmY, y, 64); /*1*/")
    x = np.ones(256, np.float32)
    found = only(simulate(source, "k", [x, x], kernel_type="AIV_ONLY", launch=1, outputs=[1], inout=[1]))
    assert (found.kind, found.line, found.other_line) == ("race", line(source, "/*1*/"), line(source, "/*2*/"))


HALVES = kernel(
    "X Y",
    "MIX_AIC_1_2",
    f"""{gm("X Y", elements=256)}
if ASCEND_IS_AIV {{ {UB} auto x = ub.GetWithOffset<float>(64, 0);
  DataCopy(x, gmX, 64);
  ORDER(MTE2_MTE3);
  DataCopy(gmY[GetSubBlockIdx() * STEP], x, 64); /*store*/
}}""",
)


def halves(step: int) -> Simulation:
    x = np.ones(256, np.float32)
    source = HALVES.replace("STEP", str(step))
    return simulate(source, "k", [x, x], kernel_type="MIX_AIC_1_2", launch=1, outputs=[1])


def test_the_two_vector_cores_of_a_block_meet_in_gm() -> None:
    found = only(halves(56))
    assert (found.kind, found.line, found.other_line) == ("race", line(HALVES, "/*store*/"), line(HALVES, "/*store*/"))
    assert "AIV0" in found.message
    assert "AIV1" in found.message
    assert "no flag of mode 2 orders two vector cores" in found.message
    assert halves(64).ok


NEXT = kernel(
    "X Y",
    "AIV_ONLY",
    f"""{gm("X Y", elements=256)} {UB} auto x = ub.GetWithOffset<float>(64, 0), y = ub.GetWithOffset<float>(64, 256);
int at = GetBlockIdx() * 64;
DataCopy(x, gmX[at], 64); ORDER(MTE2_MTE3);
DataCopy(gmY[at], x, 64); /*store*/
if (GetBlockIdx() == 1) {{
  DataCopy(y, gmY, 64); /*load*/
}}
""",
)


def test_a_block_reads_what_another_one_writes() -> None:
    x = np.ones(256, np.float32)
    found = only(simulate(NEXT, "k", [x, x], kernel_type="AIV_ONLY", launch=2, outputs=[1]))
    assert (found.kind, found.line, found.other_line) == ("block_race", line(NEXT, "/*load*/"), line(NEXT, "/*store*/"))
    assert "blocks run in no promised order" in found.message


def test_two_sets_of_one_core_may_take_effect_in_either_order() -> None:
    source = fused(
        cube="CrossCoreSetFlag<2, PIPE_FIX>(0); CrossCoreSetFlag<2, PIPE_M>(2); " + BACK, early="CrossCoreWaitFlag(2);"
    )
    source = source.replace("    ORDER(MTE2_V);\n", "    ORDER(MTE2_V); CrossCoreWaitFlag(0);\n")
    found = only(run_fused(source))
    assert (found.kind, found.line, found.other_line) == ("race", line(source, "/*load*/"), line(source, "/*fixpipe*/"))
    assert "CrossCoreSetFlag<2, PIPE_FIX> after line" in found.message


def test_a_race_of_an_emitted_kernel_leads_to_its_source() -> None:
    gemm = subject("gemm")
    lines = next(lines for lines in pairs_of(gemm) if "M_FIX" in statement(gemm, lines[0]))
    found = only(gemm.run(tuple(f"drop:{line}" for line in lines)))
    told = finding_text(found, gemm.source, (gemm_file := "\n" * 8 + "  c += a @ b"))
    assert "Mmad" in told
    assert f"gemm.tile:9: {gemm_file.strip()}" in told
    assert "SetFlag<HardEvent::M_FIX>" in told


# ---- flags ------------------------------------------------------------------------------------------------------------------


def test_a_wait_that_nothing_satisfies_names_its_core_and_pipe() -> None:
    found = has("SetFlag<HardEvent::MTE2_V>(1);\nWaitFlag<HardEvent::MTE2_V>(0); /*1*/", "deadlock")
    assert (found.core, found.pipe) == ("AIV", "V")
    assert "pipe V of AIV waits for flag MTE2_V, 0, and no set of it by MTE2 comes before" in found.message


def test_cores_that_wait_for_one_another_are_named_with_their_places() -> None:
    source = fused(late=BACK, cube=SET, early=WAIT)
    found = {f.core: f for f in run_fused(source).findings}
    assert set(found) == {"AIC", "AIV0", "AIV1"}
    assert f"AIC (which waits at line {line(source, '/*back*/')})" in found["AIV0"].message
    assert f"AIV1 (which waits at line {line(source, '/*wait*/')})" in found["AIC"].message


def test_a_counter_that_nothing_takes_from_overflows_at_its_set() -> None:
    source = fused(cube="for (int i = 0; i < 16; ++i) {\n CrossCoreSetFlag<2, PIPE_FIX>(0); /*set*/ }\n" + BACK, early=WAIT)
    found = only(run_fused(source))
    assert (found.kind, found.line) == ("cross_flag", line(source, "/*set*/"))
    assert "counts beyond 15" in found.message


# ---- buffers ----------------------------------------------------------------------------------------------------------------

TWO = "auto first = ub.GetWithOffset<float>(64, 0), second = ub.GetWithOffset<float>(64, {});\n"
USE = "Duplicate(first, 1.0f, 64);\nPipeBarrier<PIPE_V>();\nDuplicate(second, 2.0f, 64); /*2*/\nPipeBarrier<PIPE_V>();\n"
READ = "Exp(y, first, 64); /*1*/"


def test_two_buffers_that_overlap_while_both_are_in_use() -> None:
    found = has(TWO.format(128) + USE + READ, "overlap")
    assert "at bytes [0, 256) of UB" in found.message
    assert "at [128, 384)" in found.message
    assert run(TWO.format(256) + USE + READ)[1].ok


def test_a_buffer_that_is_no_longer_used_may_be_overlapped() -> None:
    assert run(TWO.format(128) + USE + "Exp(y, second, 64);")[1].ok
    assert run(TWO.format(128) + USE + "Duplicate(first, 1.0f, 64); PipeBarrier<PIPE_V>(); " + READ)[1].ok


def test_a_part_of_a_tensor_may_be_written_by_itself() -> None:
    assert run(TWO.format(0) + "Duplicate(first, 1.0f, 64); PipeBarrier<PIPE_V>(); Duplicate(first[32], 1.0f, 16);\n"
               "PipeBarrier<PIPE_V>(); Exp(y, first, 64);")[1].ok  # fmt: skip
