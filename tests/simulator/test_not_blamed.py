"""What right kernels do and is not to be blamed, each beside the wrong kernel that looks like it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.simulator.asc import MAIN, file_of, ran
from tests.simulator.kernels import UB, gm, kernel, run_vector
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


def spread(filled: int) -> list[str]:
    """Of a view that is overwritten from its 56th element on, some are filled again and 64 are spread over blocks."""
    fill = f"auto c = ub.GetWithOffset<float>(512, 4096); Duplicate(a, 1.0f, {filled}); PipeBarrier<PIPE_V>();"
    return views(56, fill + "Brcb(c, a, 8, BrcbRepeatParams(1, 8)); PipeBarrier<PIPE_V>(); Duplicate(a, 1.0f, 128);")


def test_what_is_spread_behind_a_views_last_element_may_be_overwritten() -> None:
    assert spread(57) == []


def test_a_whole_repeat_of_what_is_spread_may_not_be_overwritten() -> None:
    assert "overlap" in spread(56)


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


# ---- what is odd and harms nothing -------------------------------------------------------------------------------------------

LOAD = "DataCopy(a, gmX, 64);"
TENSORS = "auto a = ub.GetWithOffset<float>(64, 0), b = ub.GetWithOffset<float>(64, 256), c = ub.GetWithOffset<float>(64, 512);"


def vector(body: str, lenient: bool = True) -> list[str]:
    x, y = np.arange(128, dtype=np.float32), np.zeros(64, np.float32)
    body = f"{gm('X Y', elements=128)} {UB}\n{TENSORS}\n{body}\nORDER(V_MTE3); DataCopy(gmY, b, 64);"
    source = kernel("X Y", "AIV_ONLY", body)
    done = simulate(source, "k", [x, y], kernel_type="AIV_ONLY", launch=1, outputs=[1], lenient=lenient)
    return sorted({f.kind for f in done.findings})


@pytest.mark.parametrize(("lenient", "kinds"), [(True, []), (False, ["double_set"])])
def test_a_set_may_come_before_the_wait_of_the_one_before_has_run_where_sets_and_waits_alternate(
    lenient: bool, kinds: list[str]
) -> None:
    body = f"{LOAD} ORDER(MTE2_V); DataCopy(c, gmX, 64); ORDER(MTE2_V); Add(b, a, c, 64);"
    assert vector(body, lenient) == kinds


def test_two_sets_with_no_wait_between_them_are_found() -> None:
    twice = "SetFlag<HardEvent::MTE2_V>(0);" * 2 + "WaitFlag<HardEvent::MTE2_V>(0);"
    assert vector(f"{LOAD} {twice} Exp(b, a, 64);") == ["double_set"]


@pytest.mark.parametrize(("again", "kinds"), [
    (LOAD, []),
    ("DataCopy(a, gmX[64], 64);", ["race"]),
    ("DataCopy(a[32], gmX[32], 32);", ["race"]),
    (f"{LOAD} PipeBarrier<PIPE_MTE2>(); DataCopy(a, gmX[64], 64);", ["race"]),  # Exp may still read when the last one writes
])  # fmt: skip
def test_a_load_of_what_the_same_load_has_brought_there_meets_nobody(again: str, kinds: list[str]) -> None:
    body = f"{LOAD} ORDER(MTE2_V); Exp(b, a, 64); {again} PipeBarrier<PIPE_V>();"
    assert vector(body) == kinds


def test_it_does_where_something_else_was_written_in_between() -> None:
    assert vector(f"{LOAD} ORDER(MTE2_V); Exp(b, a, 64); PipeBarrier<PIPE_V>(); Duplicate(a, 1.0f, 64); {LOAD}") == ["race"]


def test_what_tile_eg_emits_is_judged_without_leniency() -> None:
    assert vector(f"{LOAD} ORDER(MTE2_V); Exp(b, a, 64); {LOAD}", lenient=False) == ["race"]


# ---- a main in an included file ---------------------------------------------------------------------------------------------


def test_a_file_may_include_its_main(tmp_path: Path) -> None:
    at = MAIN.index("int main")
    (tmp_path / "main.h").write_text(MAIN[at:])
    source = MAIN[:at] + '#include "main.h"\n'
    assert file_of(tmp_path, source).has_main
    done = ran(tmp_path, source)
    assert done.ok and done.returned == 0 and "last 254" in done.printed
