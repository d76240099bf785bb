"""What right kernels do and is not to be blamed, each beside the wrong kernel that looks like it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.simulator.asc import MAIN, file_of, ran
from tests.simulator.kernels import CUBE, UB, gm, kernel, run_vector
from tile_eg.simulator.run import Simulation, simulate

pytestmark = pytest.mark.slow(but=3)

# ---- two views of one buffer ------------------------------------------------------------------------------------------------


def views(second: int, body: str = "Exp(a, a, 128);") -> list[str]:
    """Views of 128 elements, `second` elements apart; 64 are loaded through each, and then the first is used as a whole."""
    source = kernel(
        "A B C",
        "AIV_ONLY",
        f"""{gm("A B C", elements=128)} {UB}
auto a = ub.GetWithOffset<float>(128, 0), b = ub.GetWithOffset<float>(128, {second * 4});
DataCopy(a, gmA, 64); PipeBarrier<PIPE_MTE2>(); DataCopy(b, gmB, 64); ORDER(MTE2_V);
{body} ORDER(V_MTE3); DataCopy(gmC, a, 128);""",
    )
    x = np.zeros(128, np.float32)
    return [f.kind for f in run_vector(source, x, x, x.copy(), inout=True).findings]


def test_views_that_are_filled_side_by_side_may_overlap_in_their_lengths() -> None:
    assert views(64) == []


def test_a_view_that_has_overwritten_part_of_what_another_one_reads_is_found() -> None:
    assert "overlap" in views(56)


def test_what_has_been_filled_again_since_may_be_read() -> None:
    assert views(56, "Duplicate(a, 1.0f, 128); PipeBarrier<PIPE_V>(); Exp(a, a, 128);") == []


# ---- memory that is reserved ------------------------------------------------------------------------------------------------


def cube(body: str, kernel_type: str = "AIC_ONLY") -> Simulation:
    x, y = np.ones(16384, np.float16), np.zeros(16384, np.float32)
    source = kernel("X Y", kernel_type, f"{gm('X', 'half', 16384)} {gm('Y', elements=16384)}\n{body}")
    return simulate(source, "k", [x, y], kernel_type=kernel_type, launch=1, outputs=[1], inout=[1])


RESERVE = "TPipe pipe; TBuf<TPosition::{0}> other; pipe.InitBuffer(other, {1});\n"
USE_UB = "LocalTensor<half> u = other.Get<half>(); DataCopy(u, gmX, 64);"


@pytest.mark.parametrize(("kernel_type", "position"), [("AIC_ONLY", "VECCALC"), ("AIV_ONLY", "A1"), ("AIV_ONLY", "CO1")])
def test_a_core_may_reserve_memory_that_only_the_other_kind_has(kernel_type: str, position: str) -> None:
    assert cube(RESERVE.format(position, 4096), kernel_type).ok


def test_a_core_may_reserve_queues_that_only_the_other_kind_uses() -> None:
    assert cube("TPipe pipe; TQue<TPosition::VECIN, 1> in; pipe.InitBuffer(in, 2, 1024);").ok


def test_a_core_may_not_use_what_it_has_not() -> None:
    (found,) = cube(RESERVE.format("VECCALC", 4096) + USE_UB).findings
    assert found.kind == "wrong_core" and "UB, which AIC has not" in found.message


def test_no_core_may_reserve_more_than_there_is() -> None:
    assert [f.kind for f in cube(RESERVE.format("VECCALC", 196609)).findings] == ["capacity"]


@pytest.mark.parametrize(("size", "kinds"), [(7168, []), (7200, ["capacity"])])
def test_seven_kilobytes_of_the_fixpipe_buffer_may_be_reserved(size: int, kinds: list[str]) -> None:
    assert [f.kind for f in cube(RESERVE.format("C2PIPE2GM", size)).findings] == kinds


TABLE = """TBuf<TPosition::A1> l1; pipe.InitBuffer(l1, 4096); auto p = l1.Get<uint64_t>(), fb = other.Get<uint64_t>();
DataCopy(p, reinterpret_cast<const GlobalTensor<uint64_t>&>(gmX), 512); ORDER(MTE2_FIX);
DataCopy(fb{0}, p, DataCopyParams(1, 16, 0, 0));"""


@pytest.mark.parametrize(("start", "kinds"), [("", []), ("[16]", ["out_of_bounds"])])
def test_two_kilobytes_of_it_hold_scales(start: str, kinds: list[str]) -> None:
    body = RESERVE.format("C2PIPE2GM", 7168) + TABLE.replace("{0}", start).replace("4096", "8192")
    assert [f.kind for f in cube(body).findings] == kinds


# ---- one flag for two buffers in turns --------------------------------------------------------------------------------------

STEP = """LoadData(l0a.Get<half>()[i % 2 * 256], p, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
LoadData(l0b.Get<half>()[i % 2 * 256], p, LoadData2DParams(0, 1, 1, 0, 0, true, 0));
SetFlag<HardEvent::MTE1_M>(0); BETWEEN WaitFlag<HardEvent::MTE1_M>(0);
Mmad(c, l0a.Get<half>()[i % 2 * 256], l0b.Get<half>()[i % 2 * 256], MmadParams(16, 16, 16, 0, false, i == 0));
PipeBarrier<PIPE_M>();"""
HEAD = f"""{CUBE} auto p = l1.Get<half>(); auto c = l0c.Get<float>();
DataCopy(p, gmX, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)); ORDER(MTE2_MTE1);
SetFlag<HardEvent::M_MTE1>(0); SetFlag<HardEvent::M_MTE1>(1);
"""
TAIL = "WaitFlag<HardEvent::M_MTE1>(0); WaitFlag<HardEvent::M_MTE1>(1);"


def ping_pong(between: str = "", behind: str = "") -> set[str]:
    """Products of operands in two buffers in turns; MTE1 waits for the product before the last one, and sets one flag for all."""
    step = f"WaitFlag<HardEvent::M_MTE1>(i % 2);\n{STEP.replace('BETWEEN', between)} {behind} SetFlag<HardEvent::M_MTE1>(i % 2);"
    return {f.kind for f in cube(f"{HEAD} for (int i = 0; i < 6; ++i) {{ {step} }} {TAIL}").findings}


def test_a_flag_whose_wait_is_next_on_its_pipe_may_be_set_behind_the_next_load() -> None:
    assert ping_pong() == set()


def test_not_so_where_the_pipe_may_wait_for_something_else_before() -> None:
    """The fixpipe may keep M for long: the next load ends, and the flag is set a second time."""
    other = "if (i % 2) { SetFlag<HardEvent::FIX_M>(0); WaitFlag<HardEvent::FIX_M>(0); }"
    assert ping_pong(between=other) == {"double_set"}


def test_nor_where_nothing_runs_between_the_two_sets() -> None:
    again = "SetFlag<HardEvent::MTE1_M>(0); WaitFlag<HardEvent::MTE1_M>(0);"
    assert ping_pong(behind=again) == {"double_set"}


# ---- a main in an included file ---------------------------------------------------------------------------------------------


def test_a_file_may_include_its_main(tmp_path: Path) -> None:
    at = MAIN.index("int main")
    (tmp_path / "main.h").write_text(MAIN[at:])
    source = MAIN[:at] + '#include "main.h"\n'
    assert file_of(tmp_path, source).has_main
    done = ran(tmp_path, source)
    assert done.ok and done.returned == 0 and "last 254" in done.printed
