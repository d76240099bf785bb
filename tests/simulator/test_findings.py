"""What is wrong with a kernel is found, named at both of its lines, and gone when it is repaired.

Each case is a broken body and a repaired one. `/*1*/` marks the line that the finding names, `/*2*/` its other line. The
cases of one kernel type are one kernel, so that they compile once; GM tensor `which` selects the case.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from tests.simulator.kernels import CUBE, UB, gm, kernel
from tile_eg.simulator.run import Finding, Simulation, simulate

ELEMENTS = 4096


@dataclass(frozen=True)
class Case:
    kind: str
    broken: str
    repaired: str


IN = "DataCopy(a, gmX, 64);"
IN_TO_V = "ORDER(MTE2_V);"
OUT = "ORDER(V_MTE3); DataCopy(gmY, b, 64);"
TEN = "Duplicate(a, 0.0f, uint64_t(10), 1, 1, 8); PipeBarrier<PIPE_V>();\n"
"""Ten elements of the first row are written."""
WHOLE = "PipeBarrier<PIPE_V>(); Cast(b.ReinterpretCast<int32_t>(), b, RoundMode::CAST_RINT, 64); PipeBarrier<PIPE_V>();"

VECTOR = {
    "a copy in is read before it has finished": Case(
        "race",
        "DataCopy(a, gmX, 64); /*2*/\nExp(b, a, 64); /*1*/",
        f"{IN}\n{IN_TO_V}\nExp(b, a, 64);",
    ),
    "a result is stored before it has been computed": Case(
        "race",
        "Duplicate(a, 1.0f, 64); /*2*/\nDataCopy(gmY, a, 64); /*1*/",
        "Duplicate(b, 1.0f, 64);\n" + OUT,
    ),
    "a buffer is filled again while it is read": Case(
        "race",
        f"{IN}\n{IN_TO_V}\nExp(b, a, 64); /*2*/\nDataCopy(a, gmX[64], 64); /*1*/",
        f"{IN}\n{IN_TO_V}\nExp(b, a, 64);\nORDER(V_MTE2);\nDataCopy(a, gmX[64], 64);",
    ),
    "a dependent vector instruction has no barrier before it": Case(
        "race",
        "Duplicate(a, 1.0f, 64); /*2*/\nExp(b, a, 64); /*1*/",
        "Duplicate(a, 1.0f, 64);\nPipeBarrier<PIPE_V>();\nExp(b, a, 64);",
    ),
    "a vector instruction writes what another may still read": Case(
        "race",
        f"{IN} {IN_TO_V}\nExp(b, a, 64); /*2*/\nDuplicate(a, 1.0f, 64); /*1*/",
        f"{IN} {IN_TO_V}\nExp(b, a, 64);\nPipeBarrier<PIPE_V>();\nDuplicate(a, 1.0f, 64);",
    ),
    "two copies in fill the same bytes": Case(
        "race",
        "DataCopy(a, gmX, 64); /*2*/\nDataCopy(a[32], gmX, 64); /*1*/",
        "DataCopy(a, gmX, 64);\nPipeBarrier<PIPE_MTE2>();\nDataCopy(a[32], gmX, 64);",
    ),
    "what was stored is loaded again without an order": Case(
        "race",
        f"Duplicate(b, 1.0f, 64); {OUT} /*2*/\nDataCopy(a, gmY, 64); /*1*/",
        f"Duplicate(b, 1.0f, 64); {OUT}\nORDER(MTE3_MTE2);\nDataCopy(a, gmY, 64);",
    ),
    "the scalar unit reads a result too early": Case(
        "race",
        "Duplicate(a, 1.0f, 64); /*2*/\nif (a.GetValue(3) > 0) Duplicate(b, 1.0f, 64); /*1*/",
        "Duplicate(a, 1.0f, 64);\nORDER(V_S);\nif (a.GetValue(3) > 0) Duplicate(b, 1.0f, 64);",
    ),
    "a flag is set twice": Case(
        "double_set",
        "SetFlag<HardEvent::MTE2_V>(0); /*2*/\nSetFlag<HardEvent::MTE2_V>(0); /*1*/\nWaitFlag<HardEvent::MTE2_V>(0);",
        "SetFlag<HardEvent::MTE2_V>(0); SetFlag<HardEvent::MTE2_V>(1);\n"
        "WaitFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(1);",
    ),
    "a flag may be set again before its wait has run": Case(
        "double_set",
        "ORDER(MTE2_V); /*2*/\nSetFlag<HardEvent::MTE2_V>(0); /*1*/\nWaitFlag<HardEvent::MTE2_V>(0);",
        "ORDER(MTE2_V);\nORDER(V_MTE2);\nORDER(MTE2_V);",
    ),
    "a flag is left over": Case(
        "leftover_flag",
        "SetFlag<HardEvent::MTE2_V>(3); /*1*/",
        "SetFlag<HardEvent::MTE2_V>(3); WaitFlag<HardEvent::MTE2_V>(3);",
    ),
    "a wait has no set": Case(
        "deadlock",
        "WaitFlag<HardEvent::MTE2_V>(0); /*1*/",
        "ORDER(MTE2_V);",
    ),
    "an id belongs to the framework": Case(
        "flag_id",
        "SetFlag<HardEvent::MTE2_V>(6); /*1*/\nWaitFlag<HardEvent::MTE2_V>(5 + 1);",
        IN_TO_V,
    ),
    "nothing has been written": Case(
        "uninitialised",
        "Exp(b, a, 64); /*2*/\nORDER(V_MTE3);\nDataCopy(gmY, b, 64); /*1*/",
        f"Duplicate(a, 0.0f, 64); PipeBarrier<PIPE_V>(); Exp(b, a, 64);\n{OUT}",
    ),
    "the tail of a row beyond its mask has not been written": Case(
        "uninitialised",
        f"{TEN} Exp(b, a, 64); /*2*/\nORDER(V_MTE3);\nDataCopyPad(gmY, b, DataCopyExtParams(1, 44, 0, 0, 0)); /*1*/",
        f"{TEN} Exp(b, a, 64);\nORDER(V_MTE3);\nDataCopyPad(gmY, b, DataCopyExtParams(1, 40, 0, 0, 0));",
    ),
    "a workspace is read before it is written": Case(
        "uninitialised",
        f"DataCopy(a, gmworkspace, 64); {IN_TO_V}\nExp(b, a, 64); /*2*/\nORDER(V_MTE3);\nDataCopy(gmY, b, 64); /*1*/",
        f"{IN} {IN_TO_V}\nExp(b, a, 64);\n{OUT}",
    ),
    "a branch depends on what is computed from nothing": Case(
        "uninitialised",
        f"{TEN} Exp(b, a, 64); /*2*/\nORDER(V_S);\nif (b.GetValue(10) > 0) Duplicate(a, 1.0f, 64); /*1*/",
        f"{TEN} Exp(b, a, 64);\nORDER(V_S);\nif (b.GetValue(9) > 0) Duplicate(a, 1.0f, 64);",
    ),
    "a sum holds what is computed from nothing": Case(
        "uninitialised",
        f"{TEN} Exp(b, a, 64); /*2*/\nPipeBarrier<PIPE_V>();\nWholeReduceSum(a[64], b, 11, 1, 1, 1, 8); /*1*/",
        f"{TEN} Exp(b, a, 64);\nPipeBarrier<PIPE_V>();\nWholeReduceSum(a[64], b, 10, 1, 1, 1, 8);",
    ),
    "an index is computed from nothing": Case(
        "uninitialised",
        f"{TEN} Muls(b, a, 4.0f, 64);\n{WHOLE}\nGather(b[64], a, b.ReinterpretCast<uint32_t>(), 0, 11); /*1*/",
        f"{TEN} Muls(b, a, 4.0f, 64);\n{WHOLE}\nGather(b[64], a, b.ReinterpretCast<uint32_t>(), 0, 10);",
    ),
    "a sum begins with nothing": Case(
        "uninitialised",
        "Duplicate(a, 1.0f, 64); PipeBarrier<PIPE_V>();\n"
        "Axpy(b, a, 2.0f, 64); /*2*/\nORDER(V_MTE3);\nDataCopy(gmY, b, 64); /*1*/",
        f"Duplicate(a, 1.0f, 64); Duplicate(b, 1.0f, 64); PipeBarrier<PIPE_V>();\nAxpy(b, a, 2.0f, 64);\n{OUT}",
    ),
    "the result lies outside of its tensor": Case(
        "out_of_bounds",
        "Duplicate(c, 0.0f, 65); /*1*/",
        "Duplicate(c, 0.0f, 64);",
    ),
    "a copy goes beyond the end of GM": Case(
        "out_of_bounds",
        f"DataCopy(a, gmX[{ELEMENTS - 32}], 64); /*1*/",
        f"DataCopy(a, gmX[{ELEMENTS - 64}], 64);",
    ),
    "an operand starts within a block": Case(
        "misaligned",
        "Duplicate(a[1], 0.0f, 64); /*1*/",
        "Duplicate(a[8], 0.0f, 64);",
    ),
    "a copy moves part of a block": Case(
        "misaligned",
        "DataCopy(a, gmX, 60); /*1*/",
        "DataCopyPad(a, gmX, DataCopyExtParams(1, 240, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0));",
    ),
    "a repeat does not fit its field": Case(
        "field",
        "Duplicate(a, 0.0f, uint64_t(8), 256, 1, 1); /*1*/",
        "Duplicate(a, 0.0f, uint64_t(8), 255, 1, 1);",
    ),
    "a gap between two rows is negative, where one row has no gap": Case(
        "field",
        "DataCopyPad(a, gmX, DataCopyExtParams(2, 128, -64, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0)); /*1*/",
        "DataCopyPad(a, gmX, DataCopyExtParams(1, 128, -64, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0));",
    ),
    "a mask has more lanes than the register": Case(
        "field",
        "Duplicate(a, 0.0f, uint64_t(65), 1, 1, 8); /*1*/",
        "Duplicate(a, 0.0f, uint64_t(64), 1, 1, 8);",
    ),
    "a round reads what an earlier one has written": Case(
        "overlap",
        "Duplicate(a, 0.0f, 256); PipeBarrier<PIPE_V>();\n"
        "Adds(a[64], a, 1.0f, uint64_t(64), 2, UnaryRepeatParams(1, 1, 8, 8)); /*1*/",
        "Duplicate(a, 0.0f, 256); PipeBarrier<PIPE_V>();\nAdds(a, a, 1.0f, uint64_t(64), 2, UnaryRepeatParams(1, 1, 8, 8));",
    ),
    "flags between cores in a kernel of one kind of core": Case(
        "cross_flag",
        "CrossCoreSetFlag<2, PIPE_MTE3>(0); /*1*/",
        "",
    ),
}

TO_L0 = (
    "DataCopy(p, gmX, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)); ORDER(MTE2_MTE1);\n"
    "LoadData(l, p, LoadData2DParams(0, 1, 1, 0, 0, false, 0)); LoadData(r, p, LoadData2DParams(0, 1, 1, 0, 0, true, 0));\n"
    "ORDER(MTE1_M);\n"
)
BIG = (
    "DataCopy(p, gmX, Nd2NzParams(1, 64, 16, 0, 16, 64, 1, 0)); ORDER(MTE2_MTE1);\n"
    "LoadData(l, p, LoadData2DParams(0, 4, 1, 0, 0, false, 0)); LoadData(r, p, LoadData2DParams(0, 4, 1, 0, 0, false, 0));\n"
    "ORDER(MTE1_M);\n"
)
FIXPIPE = "Fixpipe(gmY, c, FixpipeParamsV220(16, 16, 16, 16, false));"
LEAVES = "Fixpipe(gmY, c, FixpipeParamsV220(16, 16, 16, 16, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 3));"

CUBE_CASES = {
    "small products accumulate without a barrier": Case(
        "race",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, true)); /*2*/\n"
        "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, false)); /*1*/",
        BIG + "Mmad(c, l, r, MmadParams(64, 64, 16, 0, false, true));\nMmad(c, l, r, MmadParams(64, 64, 16, 0, false, false));",
    ),
    "an operand is loaded anew while the cube reads it": Case(
        "race",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, true)); /*2*/\n"
        "LoadData(l, p, LoadData2DParams(0, 1, 1, 0, 0, false, 0)); /*1*/",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, true));\nORDER(M_MTE1);\n"
        "LoadData(l, p, LoadData2DParams(0, 1, 1, 0, 0, false, 0));",
    ),
    "a product leaves before it is done": Case(
        "race",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, true)); /*2*/\n" + FIXPIPE + " /*1*/",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 3, false, true));\n"
        "Fixpipe(gmY, c, FixpipeParamsV220(16, 16, 16, 16, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 3)); // unit flags",
    ),
    "unit flags do not order small products among themselves": Case(
        "race",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 2, false, true)); /*2*/\n"
        "Mmad(c, l, r, MmadParams(16, 16, 16, 3, false, false)); /*1*/",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 2, false, true));\nPipeBarrier<PIPE_M>();\n"
        "Mmad(c, l, r, MmadParams(16, 16, 16, 3, false, false));\n" + LEAVES,
    ),
    "every product hands its result over": Case(
        "unit_flag",
        BIG + "Mmad(c, l, r, MmadParams(64, 64, 16, 3, false, true)); /*2*/\n"
        "Mmad(c, l, r, MmadParams(64, 64, 16, 3, false, false)); /*1*/",
        BIG + "Mmad(c, l, r, MmadParams(64, 64, 16, 2, false, true));\n"
        "Mmad(c, l, r, MmadParams(64, 64, 16, 3, false, false));\n" + LEAVES.replace("(16, 16, 16, 16", "(64, 64, 64, 64"),
    ),
    "the last product keeps its result": Case(
        "unit_flag",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 2, false, true)); /*2*/\n" + LEAVES + " /*1*/",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 3, false, true));\n" + LEAVES,
    ),
    "a result waits for a product without unit flags": Case(
        "unit_flag",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, true)); /*2*/\nORDER(M_FIX);\n" + LEAVES + " /*1*/",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, true));\nORDER(M_FIX);\n" + FIXPIPE,
    ),
    "a result leaves without the unit flags of its product": Case(
        "unit_flag",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 3, false, true)); /*2*/\nORDER(M_FIX);\n" + FIXPIPE + " /*1*/",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 3, false, true));\nORDER(M_FIX);\n" + LEAVES,
    ),
    "nobody takes what a product hands over": Case(
        "unit_flag",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 3, false, true)); /*1*/",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 3, false, true));\nSetFixPipeConfig(c, true);",
    ),
    "the column blocks of a matrix overlap in L1": Case(
        "overlap",
        "DataCopy(p, gmX, Nd2NzParams(1, 20, 32, 0, 32, 16, 1, 0)); /*1*/",
        "DataCopy(p, gmX, Nd2NzParams(1, 20, 32, 0, 32, 32, 1, 0));",
    ),
    "the rows of a result overlap": Case(
        "overlap",
        "Fixpipe(gmY, c, FixpipeParamsV220(32, 16, 16, 16, false)); /*1*/",
        "",
    ),
    "a product adds to nothing": Case(
        "uninitialised",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, false));\nORDER(M_FIX);\n"
        + FIXPIPE + " /*1*/",
        TO_L0 + "Mmad(c, l, r, MmadParams(16, 16, 16, 0, false, true));\nORDER(M_FIX);\n"
        + FIXPIPE,
    ),
    "a transposing load of a size that it does not know": Case(
        "field",
        "auto f = l.ReinterpretCast<float>();\n"
        "LoadData(f, p.ReinterpretCast<float>(), LoadData2DParams(0, 1, 1, 0, 0, true, 0)); /*1*/",
        "auto f = l.ReinterpretCast<float>();\n"
        "LoadData(f, p.ReinterpretCast<float>(), LoadData2DParams(0, 1, 1, 0, 0, false, 0));",
    ),
    "the rows of a matrix lie too far apart": Case(
        "field",
        "DataCopy(p, gmX, Nd2NzParams(1, 1, 16, 0, 65536, 16, 1, 0)); /*1*/",
        "DataCopy(p, gmX, Nd2NzParams(1, 1, 16, 0, 65535, 16, 1, 0));",
    ),
    "a cast that the fixpipe is not told of": Case(
        "field",
        "Fixpipe(gmX, c, FixpipeParamsV220(16, 16, 16, 16, false)); /*1*/",
        "",
    ),
    "a copy to a memory that there is no path to": Case(
        "wrong_memory",
        "DataCopy(l, gmX, 64); /*1*/",
        "DataCopy(p, gmX, 64);",
    ),
    "more than the memory holds": Case(
        "capacity",
        "TBuf<TPosition::A2> more; pipe.InitBuffer(more, 32); /*1*/",
        "",
    ),
}  # fmt: skip

PLACES = """GlobalTensor<half> gmX; gmX.SetGlobalBuffer((__gm__ half*)X); auto l = l0a.Get<half>(); auto r = l0b.Get<half>();
auto p = l1.Get<half>(); auto c = l0c.Get<float>();"""
SETUP = {
    "AIV_ONLY": f"""{gm("X Y", elements=ELEMENTS)} {gm("workspace", elements=64)} {UB}
auto a = ub.GetWithOffset<float>(4096, 0), b = ub.GetWithOffset<float>(4096, 65536), c = ub.GetWithOffset<float>(64, 131072);""",
    "AIC_ONLY": f"{gm('Y', elements=ELEMENTS)} {CUBE}\n{PLACES}",
}
CASES = {"AIV_ONLY": VECTOR, "AIC_ONLY": CUBE_CASES}
ALL = [(kernel_type, name) for kernel_type, cases in CASES.items() for name in cases]


@cache
def source(kernel_type: str) -> str:
    bodies = [body for case in CASES[kernel_type].values() for body in (case.broken, case.repaired)]
    cases = "\n".join(f"case {i}: {{\n{body}\n}} break; // end {i}" for i, body in enumerate(bodies))
    select = "GlobalTensor<int32_t> number; number.SetGlobalBuffer((__gm__ int32_t*)which);"
    return kernel("X Y which", kernel_type, f"{SETUP[kernel_type]}\n{select}\nswitch (number.GetValue(0)) {{\n{cases}\n}}")


def run(kernel_type: str, name: str, repaired: bool) -> Simulation:
    number = list(CASES[kernel_type]).index(name) * 2 + repaired
    x, y = np.ones(ELEMENTS, np.float32), np.zeros(ELEMENTS, np.float32)
    if kernel_type == "AIC_ONLY":
        x = np.ones(70000, np.float16)
    which = np.array([number], np.int32)
    return simulate(source(kernel_type), "k", [x, y, which], kernel_type=kernel_type, launch=1, workspace=256, outputs=[1])


def marked(kernel_type: str, name: str, mark: str) -> int:
    """The line of a mark in the broken body of a case, or 0."""
    number = list(CASES[kernel_type]).index(name) * 2
    lines = source(kernel_type).splitlines()
    start, end = lines.index(f"case {number}: {{"), lines.index(f"}} break; // end {number}")
    return next((i + 1 for i in range(start, end) if mark in lines[i]), 0)


@pytest.mark.slow(but=26)
@pytest.mark.parametrize(("kernel_type", "name"), ALL, ids=[name for _, name in ALL])
def test_a_fault_is_found_at_its_lines(kernel_type: str, name: str) -> None:
    found = run(kernel_type, name, repaired=False).findings
    assert found, "nothing was found"
    first = found[0]
    expected = (CASES[kernel_type][name].kind, marked(kernel_type, name, "/*1*/"), marked(kernel_type, name, "/*2*/"))
    assert (first.kind, first.line, first.other_line) == expected, first


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("kernel_type", "name"), ALL, ids=[name for _, name in ALL])
def test_the_repaired_kernel_has_no_fault(kernel_type: str, name: str) -> None:
    done = run(kernel_type, name, repaired=True)
    assert done.ok, done


def race(name: str) -> Finding:
    return run("AIV_ONLY", name, repaired=False).findings[0]


def test_a_race_names_the_flag_that_would_order_it() -> None:
    found = race("a copy in is read before it has finished")
    assert f"SetFlag<HardEvent::MTE2_V> after line {found.other_line}" in found.message
    assert f"WaitFlag<HardEvent::MTE2_V> before line {found.line}" in found.message


def test_a_race_on_one_pipe_names_the_barrier() -> None:
    assert "PipeBarrier<PIPE_V>" in race("a dependent vector instruction has no barrier before it").message


@pytest.mark.slow
def test_a_unit_flag_that_is_waited_for_for_ever_says_what_to_change() -> None:
    last = run("AIC_ONLY", "the last product keeps its result", repaired=False).findings[0]
    assert f"Mmad at line {last.other_line} (unitFlag = 2), the last to write it, keeps it" in last.message
    assert "give the last Mmad of a result unitFlag = 3" in last.message


def test_a_race_names_the_bytes() -> None:
    assert "bytes [128, 256) of UB" in race("two copies in fill the same bytes").message
