"""The clauses of docs/machine.md as litmus kernels: what keeps a clause has no finding, what breaks it has its kind."""

from __future__ import annotations

import numpy as np
import pytest
from litmus import Litmus

from tile_eg.simulator.run import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="the simulator needs a C++ compiler")

VECTOR_CASES = {
    "independent": "DataCopy(a, x, 64); ORDER(MTE2, V); Exp(b, a, 64); Muls(c, a, 2.0f, 64);",
    "dependent, no barrier": "DataCopy(a, x, 64); ORDER(MTE2, V); Exp(b, a, 64); Muls(c, b, 2.0f, 64);",
    "dependent, barrier": "DataCopy(a, x, 64); ORDER(MTE2, V); Exp(b, a, 64); PipeBarrier<PIPE_V>(); Muls(c, b, 2.0f, 64);",
    "comparison register, no barrier": "Duplicate(a, 1.0f, 64); Duplicate(b, 2.0f, 64); PipeBarrier<PIPE_V>(); "
        "Compare(a, b, CMPMODE::LT, 64, BinaryRepeatParams(1, 1, 1, 8, 8, 8)); "
        "Select<float, SELMODE::VSEL_CMPMASK_SPR>(c, a, b, 1, BinaryRepeatParams(1, 1, 1, 8, 8, 8));",
    "comparison register, barrier": "Duplicate(a, 1.0f, 64); Duplicate(b, 2.0f, 64); PipeBarrier<PIPE_V>(); "
        "Compare(a, b, CMPMODE::LT, 64, BinaryRepeatParams(1, 1, 1, 8, 8, 8)); PipeBarrier<PIPE_V>(); "
        "Select<float, SELMODE::VSEL_CMPMASK_SPR>(c, a, b, 1, BinaryRepeatParams(1, 1, 1, 8, 8, 8));",
    "merges repeat over lists in a row": "Duplicate(a, 1.0f, 256); PipeBarrier<PIPE_V>(); const uint16_t n[4] = {8, 8, 8, 8}; "
        "MrgSort(b, MrgSortSrcList<float>(a, a[16], a[32], a[48]), MrgSort4Info(n, false, 15, 2));",
    "merges repeat over lists apart": "Duplicate(a, 1.0f, 256); PipeBarrier<PIPE_V>(); const uint16_t n[4] = {8, 8, 8, 8}; "
        "MrgSort(b, MrgSortSrcList<float>(a, a[16], a[32], a[64]), MrgSort4Info(n, false, 15, 2));",
    "overwrites a source, no barrier": "DataCopy(a, x, 64); ORDER(MTE2, V); Exp(b, a, 64); Duplicate(a, 1.0f, 64);",
    "overwrites a result, no barrier": "Duplicate(a, 1.0f, 64); Duplicate(a, 2.0f, 64);",
    "loads overlap, no barrier": "DataCopy(a, x, 64); DataCopy(a[32], x, 64);",
    "loads overlap, barrier": "DataCopy(a, x, 64); PipeBarrier<PIPE_MTE2>(); DataCopy(a[32], x, 64);",
    "loads apart": "DataCopy(a, x, 64); DataCopy(a[64], x, 64);",
    "stores overlap, no barrier": "Duplicate(a, 1.0f, 64); ORDER(V, MTE3); DataCopy(y, a, 64); DataCopy(y[32], a, 64);",
    "stores overlap, barrier":
        "Duplicate(a, 1.0f, 64); ORDER(V, MTE3); DataCopy(y, a, 64); PipeBarrier<PIPE_MTE3>(); DataCopy(y[32], a, 64);",
    "stores apart": "Duplicate(a, 1.0f, 64); ORDER(V, MTE3); DataCopy(y, a, 64);",
    "stores by block": "Duplicate(a, 1.0f, 64); ORDER(V, MTE3); DataCopy(y[64 * GetBlockIdx()], a, 64);",
    "other pipe, no flag": "DataCopy(a, x, 64); Exp(b, a, 64);",
    "other pipe, barrier instead of a flag": "DataCopy(a, x, 64); PipeBarrier<PIPE_V>(); Exp(b, a, 64);",
    "other pipe, flag of other pipes": "DataCopy(a, x, 64); ORDER(MTE3, V); Exp(b, a, 64);",
    "a flag set before the producer": "SET(MTE2, V, 0); DataCopy(a, x, 64); WAIT(MTE2, V, 0); Exp(b, a, 64);",
    "reuse, no flag back":
        "DataCopy(a, x, 64); ORDER(MTE2, V); Exp(b, a, 64); DataCopy(a, x, 64);",
    "reuse, flag back":
        "DataCopy(a, x, 64); ORDER(MTE2, V); Exp(b, a, 64); ORDER(V, MTE2); DataCopy(a, x, 64);",
    "set twice": "SET(MTE2, V, 0); SET(MTE2, V, 0); WAIT(MTE2, V, 0); WAIT(MTE2, V, 0);",
    "one id in a loop, no flag back": "for (int i = 0; i < 3; ++i) { DataCopy(a[64 * i], x, 64); ORDER(MTE2, V); }",
    "one id in a loop, flag back": "for (int i = 0; i < 3; ++i) { DataCopy(a[64 * i], x, 64); ORDER(MTE2, V); ORDER(V, MTE2); }",
    "the scalar unit has waited": "for (int i = 0; i < 3; ++i) { ORDER(V, S); }",
    "two events may share an id": "SET(MTE2, V, 0); SET(V, MTE3, 0); WAIT(MTE2, V, 0); WAIT(V, MTE3, 0);",
    "wait without set": "WAIT(MTE2, V, 0);",
    "wait with another id": "SET(MTE2, V, 1); WAIT(MTE2, V, 0);",
    "set without wait": "SET(MTE2, V, 0);",
    "framework's id": "SET(MTE2, V, 6); WAIT(MTE2, V, 6);",
    "id beyond 7": "SET(MTE2, V, 8); WAIT(MTE2, V, 8);",
    "event of the cube core": "SET(MTE1, M, 0); WAIT(MTE1, M, 0);",
    "cube instruction": "PipeBarrier<PIPE_M>();",
    "cross flag": "CrossCoreSetFlag<2, PIPE_V>(0);",
    "block of 32 bytes": "DataCopy(a, x, 64); ORDER(MTE2, V); Exp(b[4], a, 32);",
    "copy of half a block": "DataCopy(a, x, 12);",
    "rows of any length":
        "rows(3, 20); ORDER(MTE2, MTE3); DataCopyPad(y, a, DataCopyExtParams(3, 20, 0, 0, 0));",
    "rows in UB": "rows(3, 20); ORDER(MTE2, MTE3); DataCopy(y, a, 24);",
    "beyond the tensor": "DataCopy(a, x[16384 - 32], 64);",
    "beyond the memory": "TBuf<TPosition::VECCALC> more; pipe.InitBuffer(more, 140000);",
    "256 repeats": "Exp(b, a, 64, 256, UnaryRepeatParams(1, 1, 8, 8));",
    "4096 rows": "rows(4096, 4);",
    "nothing written": "Exp(b, a, 64); ORDER(V, MTE3); DataCopy(y, b, 64);",
    "reciprocal": "DataCopy(a, x, 256); ORDER(MTE2, V); Reciprocal(b, a, 256); ORDER(V, MTE3); DataCopy(y, b, 256);",
    "rsqrt": "DataCopy(a, x, 256); ORDER(MTE2, V); Rsqrt(b, a, 256); ORDER(V, MTE3); DataCopy(y, b, 256);",
    "division": "DataCopy(a, x, 256); Duplicate(c, 1.0f, 256); PipeBarrier<PIPE_V>(); ORDER(MTE2, V); Div(b, c, a, 256); "
                "ORDER(V, MTE3); DataCopy(y, b, 256);",
}  # fmt: skip
CUBE_CASES = {
    "small accumulation, no barrier": "operands(32); product(32, true); product(32, false); ORDER(M, FIX); out(32);",
    "small accumulation, barrier":
        "operands(32); product(32, true); PipeBarrier<PIPE_M>(); product(32, false); ORDER(M, FIX); out(32);",
    "large accumulation, no barrier": "operands(64); product(64, true); product(64, false); ORDER(M, FIX); out(64);",
    "fixpipe without flag": "operands(32); product(32, true); out(32);",
    "product without flag":
        "DataCopy(p, h, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)); ORDER(MTE2, MTE1); "
        "LoadData(left, p, LoadData2DParams(0, 1, 1, 0, 0, false, 0)); "
        "LoadData(right, p, LoadData2DParams(0, 1, 1, 0, 0, true, 0)); product(16, true);",
    "product": "operands(32); product(32, true); ORDER(M, FIX); out(32);",
    "depth off the fractal": "operands(32); mmad(32, 32, 20, true); ORDER(M, FIX); out(32);",
    "one row": "operands(32); mmad(1, 32, 32, true); ORDER(M, FIX); row();",
    "one row of 16": "operands(32); mmad(16, 32, 32, true); ORDER(M, FIX); row();",
    "20 columns to GM":
        "operands(32); product(32, true); ORDER(M, FIX); Fixpipe<float, float, CFG_ROW_MAJOR>(y, acc, "
        "FixpipeParamsV220(20, 32, 32, 20, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 0));",
    "32 columns to L1": "operands(32); product(32, true); ORDER(M, FIX); toL1(32);",
    "20 columns to L1": "operands(32); product(32, true); ORDER(M, FIX); toL1(20);",
    "float to L1":
        "operands(32); product(32, true); ORDER(M, FIX); LocalTensor<float> f = q.ReinterpretCast<float>(); "
        "Fixpipe<float, float, CFG_NZ>(f, acc, FixpipeParamsV220(32, 32, 32, 64, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 0));",
    "cross flag": "CrossCoreSetFlag<2, PIPE_FIX>(0);",
    "L0A off 512 bytes": "operands(16); Mmad(acc, left[128], right, MmadParams(16, 16, 16, 0, false, true));",
    "L0C off 1024 bytes": "operands(16); Mmad(acc[16], left, right, MmadParams(16, 16, 16, 0, false, true));",
    "16385 rows": "DataCopy(p, h, Nd2NzParams(1, 16385, 16, 0, 16, 16, 1, 0));",
    "pitch beyond 16 bits": "DataCopy(p, h, Nd2NzParams(1, 2, 16, 0, 65536, 16, 1, 0));",
    "unit flags: 2, then 3, and a Fixpipe with 3":
        "operands(64); flagged(2, true); flagged(2, false); flagged(3, false); leave(3);",
    "unit flags: tiles one after the other":
        "operands(64); for (int i = 0; i < 3; ++i) { flagged(2, true); flagged(3, false); leave(3); }",
    "unit flags: two results":
        "operands(64); flagged(2, true); flagged(2, true, 1); flagged(3, false); flagged(3, false, 1); leave(3, 1); leave(3);",
    "unit flags: two Fixpipes of one result": "operands(64); flagged(3, true); leave(2); leave(3);",
    "unit flags: a result in parts":
        "operands(64); flagged(3, true); leave(3, 0, 64, 0, 32); leave(3, 0, 64, 32, 32); flagged(3, true); leave(3);",
    "unit flags: rows within a fractal": "operands(64); flagged(3, true); leave(3, 0, 50); flagged(3, true); leave(3);",
    "unit flags: taken back": "operands(64); flagged(3, true); SetFixPipeConfig(acc, true);",
    "unit flags misused: every Mmad with 3": "operands(64); flagged(3, true); flagged(3, false); leave(3);",
    "unit flags misused: a Fixpipe with 3 after Mmads without": "operands(64); flagged(0, true); ORDER(M, FIX); leave(3);",
    "unit flags misused: a Fixpipe without after an Mmad with 3": "operands(64); flagged(3, true); ORDER(M, FIX); leave(0);",
    "unit flags misused: a product without, then one with": "operands(64); flagged(0, true); flagged(3, false); leave(3);",
    "unit flags misused: a product with, then one without":
        "operands(64); flagged(3, true); flagged(0, false); ORDER(M, FIX); leave(3);",
    "unit flags misused: the last Mmad with 2": "operands(64); flagged(2, true); flagged(2, false); leave(3);",
    "unit flags misused: the Fixpipe with 2": "operands(64); flagged(3, true); leave(2); flagged(3, true); leave(3);",
    "unit flags misused: two Fixpipes with 3": "operands(64); flagged(3, true); leave(3); leave(3);",
    "unit flags misused: part of a result": "operands(64); flagged(3, true); leave(3, 0, 64, 0, 32); flagged(3, true); leave(3);",
    "unit flags misused: rows beyond a fractal": "operands(64); flagged(3, true); leave(3, 0, 40); flagged(3, true); leave(3);",
    "unit flags misused: the other result": "operands(64); flagged(3, true); flagged(2, true, 1); leave(3, 1);",
    "unit flags misused: no Fixpipe": "operands(64); flagged(3, true);",
    "unit flags: 1": "operands(64); flagged(1, true);",
    "4096 columns": "Mmad(acc, left, right, MmadParams(16, 4096, 16, 0, false, true));",
    "vector instruction": "LocalTensor<float> u(TPosition::VECCALC, 0, 64); Duplicate(u, 1.0f, 64);",
}  # fmt: skip
_GIVE = "if ASCEND_IS_AIC { operands(16); product(16, true); ORDER(M, FIX); give(); "
_TAKE = "DataCopy(a, ws, 256);"
_KEEP = "ORDER(MTE2, MTE3); if (GetSubBlockIdx() == 0) { DataCopy(y, a, 256); } else { DataCopy(y[256], a, 256); }"
MIXED_CASES = {
    "handover": _GIVE + "CrossCoreSetFlag<2, PIPE_FIX>(0); } else { CrossCoreWaitFlag(0);" + _TAKE + _KEEP + "}",
    "no flag": _GIVE + "} else {" + _TAKE + "}",
    "set for another pipe": _GIVE + "CrossCoreSetFlag<2, PIPE_MTE2>(0); } else { CrossCoreWaitFlag(0);" + _TAKE + "}",
    "one vector core sets":
        "if ASCEND_IS_AIV { if (GetSubBlockIdx() == 0) { CrossCoreSetFlag<2, PIPE_V>(1); } } else { CrossCoreWaitFlag(1); }",
    "both vector cores set": "if ASCEND_IS_AIV { CrossCoreSetFlag<2, PIPE_V>(1); } else { CrossCoreWaitFlag(1); }",
    "wait without set": "if ASCEND_IS_AIC { CrossCoreWaitFlag(2); }",
    "15 sets":
        "if ASCEND_IS_AIC { for (int i = 0; i < 15; ++i) CrossCoreSetFlag<2, PIPE_FIX>(0); CrossCoreSetFlag<2, PIPE_FIX>(1); } "
        "else { CrossCoreWaitFlag(1); for (int i = 0; i < 15; ++i) CrossCoreWaitFlag(0); }",
    "16 sets":
        "if ASCEND_IS_AIC { for (int i = 0; i < 16; ++i) CrossCoreSetFlag<2, PIPE_FIX>(0); CrossCoreSetFlag<2, PIPE_FIX>(1); } "
        "else { CrossCoreWaitFlag(1); for (int i = 0; i < 16; ++i) CrossCoreWaitFlag(0); }",
    "id of SyncAll": "if ASCEND_IS_AIC { CrossCoreSetFlag<2, PIPE_FIX>(11); } else { CrossCoreWaitFlag(11); SyncAll(); }",
    "the second set for the first":
        _GIVE + "CrossCoreSetFlag<2, PIPE_FIX>(0); CrossCoreSetFlag<2, PIPE_M>(1); } else { CrossCoreWaitFlag(1);" + _TAKE +
        "CrossCoreWaitFlag(0); }",
    "set left over": "if ASCEND_IS_AIC { CrossCoreSetFlag<2, PIPE_FIX>(0); }",
    "each waits for the other":
        "if ASCEND_IS_AIC { CrossCoreWaitFlag(0); CrossCoreSetFlag<2, PIPE_FIX>(1); } "
        "else { CrossCoreWaitFlag(1); CrossCoreSetFlag<2, PIPE_V>(0); }",
}  # fmt: skip
VECTOR = Litmus("AIV_ONLY", VECTOR_CASES)
CUBE = Litmus("AIC_ONLY", CUBE_CASES)
MIXED = Litmus("MIX_AIC_1_2", MIXED_CASES)
CLEAN: set[str] = set()


def check(litmus: Litmus, case: str, *demanded: str) -> None:
    """The clause demands exactly these kinds of findings."""
    assert litmus.kinds(case) == set(demanded)


# ---- issue and completion (clauses 3-5) -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_merges_repeat_over_four_lists_in_a_row() -> None:
    check(VECTOR, "merges repeat over lists in a row")
    check(VECTOR, "merges repeat over lists apart", "field")


@pytest.mark.parametrize("case", ["dependent, no barrier", "overwrites a source, no barrier", "overwrites a result, no barrier"])
def test_dependent_vector_instructions_need_a_barrier(case: str) -> None:
    check(VECTOR, case, "race")


@pytest.mark.parametrize("case", ["independent", "dependent, barrier"])
def test_a_barrier_orders_vector_instructions(case: str) -> None:
    check(VECTOR, case)


@pytest.mark.parametrize("case", ["loads overlap, no barrier", "stores overlap, no barrier"])
def test_copies_to_overlapping_destinations_need_a_barrier(case: str) -> None:
    check(VECTOR, case, "race")


@pytest.mark.parametrize("case", ["loads overlap, barrier", "stores overlap, barrier", "loads apart"])
def test_copies_to_other_destinations_need_none(case: str) -> None:
    check(VECTOR, case)


@pytest.mark.slow
def test_small_accumulating_products_need_a_barrier() -> None:
    check(CUBE, "small accumulation, no barrier", "race")


@pytest.mark.parametrize("case", ["small accumulation, barrier", "large accumulation, no barrier"])
def test_large_accumulating_products_are_guarded(case: str) -> None:
    check(CUBE, case)


@pytest.mark.parametrize(
    ("case", "kinds"), [("comparison register, no barrier", ["race"]), ("comparison register, barrier", [])]
)
def test_the_register_of_comparisons_needs_a_barrier_too(case: str, kinds: list[str]) -> None:
    check(VECTOR, case, *kinds)


# ---- unit flags (clause 28) -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [name for name in CUBE_CASES if name.startswith("unit flags: ") and name != "unit flags: 1"])
def test_unit_flags_hand_a_result_over_and_back(case: str) -> None:
    check(CUBE, case)


@pytest.mark.parametrize("case", [name for name in CUBE_CASES if name.startswith("unit flags misused: ")])
def test_a_unit_flag_that_nobody_gives_or_takes_is_found(case: str) -> None:
    check(CUBE, case, "unit_flag")


def test_unit_flag_1_is_reserved() -> None:
    check(CUBE, "unit flags: 1", "field")


# ---- flags inside a core (clauses 6-8) --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        "other pipe, no flag", "other pipe, barrier instead of a flag", "a flag set before the producer", "reuse, no flag back",
    ],
)  # fmt: skip
def test_pipes_are_ordered_by_flags_only(case: str) -> None:
    check(VECTOR, case, "race")


@pytest.mark.parametrize("case", ["fixpipe without flag", "product without flag"])
def test_cube_pipes_are_ordered_by_flags_only(case: str) -> None:
    check(CUBE, case, "race")


def test_a_flag_orders_only_its_own_pipes() -> None:
    check(VECTOR, "other pipe, flag of other pipes", "race")


def test_a_flag_back_frees_a_buffer() -> None:
    check(VECTOR, "reuse, flag back")


@pytest.mark.parametrize("case", ["set twice", "one id in a loop, no flag back"])
def test_a_flag_holds_one_bit(case: str) -> None:
    assert "double_set" in VECTOR.kinds(case)


@pytest.mark.parametrize("case", ["one id in a loop, flag back", "the scalar unit has waited", "two events may share an id"])
def test_a_flag_may_be_used_again_after_its_wait(case: str) -> None:
    check(VECTOR, case)


@pytest.mark.parametrize("case", ["framework's id", "id beyond 7"])
def test_six_ids_are_usable(case: str) -> None:
    check(VECTOR, case, "flag_id")


def test_events_belong_to_a_kind_of_core() -> None:
    check(VECTOR, "event of the cube core", "wrong_core")


def test_a_wait_needs_its_set() -> None:
    check(VECTOR, "wait without set", "deadlock")


def test_a_wait_needs_the_set_of_its_own_id() -> None:
    assert "deadlock" in VECTOR.kinds("wait with another id")


def test_no_flag_may_be_left_over() -> None:
    check(VECTOR, "set without wait", "leftover_flag")


# ---- flags between cores (clauses 9-13) -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_set_of_the_cube_core_releases_both_vector_cores() -> None:
    x = np.zeros(16384, dtype=np.float32)
    x.view(np.float16)[:256] = np.eye(16, dtype=np.float16).ravel()
    done = MIXED.run("handover", x)
    assert not done.findings
    assert np.array_equal(done.outputs[0][:512].reshape(2, 16, 16), [np.eye(16)] * 2)


@pytest.mark.slow
def test_both_vector_cores_must_set_to_release_the_cube_core() -> None:
    assert "deadlock" in MIXED.kinds("one vector core sets")
    check(MIXED, "both vector cores set")


def test_cores_are_ordered_by_their_flags_only() -> None:
    assert MIXED.kinds("no flag") & {"race", "uninitialised"}


def test_a_cross_set_covers_its_named_pipe_only() -> None:
    assert "race" in MIXED.kinds("set for another pipe")


def test_sets_of_one_core_may_take_effect_in_any_order() -> None:
    assert "race" in MIXED.kinds("the second set for the first")


def test_a_counter_holds_15() -> None:
    check(MIXED, "15 sets")
    assert "cross_flag" in MIXED.kinds("16 sets")


def test_ids_of_sync_all_are_taken_where_it_is_called() -> None:
    assert "flag_id" in MIXED.kinds("id of SyncAll")


@pytest.mark.parametrize("case", ["wait without set", "each waits for the other"])
def test_a_cross_wait_needs_its_set(case: str) -> None:
    assert "deadlock" in MIXED.kinds(case)


def test_no_counter_may_be_left_over() -> None:
    check(MIXED, "set left over", "leftover_flag")


@pytest.mark.parametrize("litmus", [VECTOR, CUBE], ids=lambda v: v.kernel_type)
def test_kernels_of_one_kind_of_core_have_no_cross_flags(litmus: Litmus) -> None:
    check(litmus, "cross flag", "cross_flag")


# ---- memory and instructions (clauses 15-22) --------------------------------------------------------------------------------


def test_ub_addresses_are_multiples_of_32_bytes() -> None:
    check(VECTOR, "block of 32 bytes", "misaligned")


@pytest.mark.parametrize("case", ["L0A off 512 bytes", "L0C off 1024 bytes"])
def test_l0_addresses_are_aligned(case: str) -> None:
    check(CUBE, case, "misaligned")


def test_data_copy_moves_whole_blocks() -> None:
    check(VECTOR, "copy of half a block", "misaligned")


def test_data_copy_pad_moves_any_length() -> None:
    done = VECTOR.run("rows of any length")
    assert not done.findings
    assert np.array_equal(done.outputs[0][:15], np.arange(15))


def test_rows_in_ub_start_at_multiples_of_32_bytes() -> None:
    done = VECTOR.run("rows in UB")
    assert np.array_equal(done.outputs[0][8:13], np.arange(5, 10))


@pytest.mark.parametrize(("case", "kind"), [("beyond the tensor", "out_of_bounds"), ("beyond the memory", "capacity")])
def test_memory_ends_where_it_ends(case: str, kind: str) -> None:
    check(VECTOR, case, kind)


def test_what_nothing_has_written_cannot_be_read() -> None:
    check(VECTOR, "nothing written", "uninitialised")


@pytest.mark.parametrize("case", ["256 repeats", "4096 rows"])
def test_vector_fields_have_a_width(case: str) -> None:
    check(VECTOR, case, "field")


@pytest.mark.parametrize("case", ["16385 rows", "pitch beyond 16 bits", "4096 columns"])
def test_cube_fields_have_a_width(case: str) -> None:
    check(CUBE, case, "field")


@pytest.mark.parametrize(("litmus", "case"), [(VECTOR, "cube instruction"), (CUBE, "vector instruction")], ids=["vector", "cube"])
def test_a_core_has_its_own_pipes_only(litmus: Litmus, case: str) -> None:
    check(litmus, case, "wrong_core")


def halves(values: np.ndarray) -> np.ndarray:
    x = np.zeros(16384, dtype=np.float32)
    x.view(np.float16)[: values.size] = values.ravel()
    return x


MATRIX = (np.arange(1024, dtype=np.float32).reshape(32, 32) / 64).astype(np.float16)


def cube_output(case: str, rows: int, cols: int) -> np.ndarray:
    done = CUBE.run(case, halves(MATRIX))
    assert not done.findings
    return done.outputs[0][: rows * cols].reshape(rows, cols)


def test_a_product_accumulates_in_float() -> None:
    wide = MATRIX.astype(np.float32)
    assert np.allclose(cube_output("product", 32, 32), wide @ wide, rtol=1e-6)


@pytest.mark.slow
def test_a_product_sees_only_its_depth() -> None:
    wide = MATRIX.astype(np.float32)
    assert np.allclose(cube_output("depth off the fractal", 32, 32), wide[:, :20] @ wide[:20], rtol=1e-6)


def test_with_one_row_mmad_reads_its_left_operand_unpadded() -> None:
    wide = MATRIX.astype(np.float32)
    first_fractal = np.concatenate([wide[0, :16], wide[1, :16]])
    done = CUBE.run("one row", halves(MATRIX))
    assert np.allclose(done.outputs[0][:32], first_fractal @ wide, rtol=1e-5)


def test_sixteen_rows_read_it_in_fractals() -> None:
    wide = MATRIX.astype(np.float32)
    done = CUBE.run("one row of 16", halves(MATRIX))
    assert np.allclose(done.outputs[0][:32], wide[0] @ wide, rtol=1e-5)


def test_fixpipe_to_gm_takes_any_number_of_columns() -> None:
    wide = MATRIX.astype(np.float32)
    assert np.allclose(cube_output("20 columns to GM", 32, 20), (wide @ wide)[:, :20], rtol=1e-5)


def test_fixpipe_to_l1_takes_whole_fractals() -> None:
    check(CUBE, "32 columns to L1")
    check(CUBE, "20 columns to L1", "field")


def test_fixpipe_to_l1_must_convert() -> None:
    check(CUBE, "float to L1", "field")


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("case", "exact"), [("reciprocal", lambda v: 1 / v), ("rsqrt", lambda v: 1 / np.sqrt(v))])
def test_reciprocal_and_rsqrt_are_approximations(case: str, exact: object) -> None:
    x = np.linspace(0.7, 90, 16384, dtype=np.float32)
    got = VECTOR.run(case, x).outputs[0][:256]
    error = np.abs(got / exact(x[:256].astype(np.float64)) - 1)  # type: ignore[operator]
    assert 1e-6 < error.max() < 1e-2


def test_division_is_exact_to_the_last_bit() -> None:
    x = np.linspace(0.7, 90, 16384, dtype=np.float32)
    assert np.array_equal(VECTOR.run("division", x).outputs[0][:256], np.float32(1) / x[:256])


# ---- launch (clauses 23 and 24) ---------------------------------------------------------------------------------------------


def test_a_kernel_is_launched_as_what_it_says() -> None:
    assert {finding.kind for finding in VECTOR.run("independent", kernel_type="AIC_ONLY").findings} == {"kernel_type"}


def test_blocks_must_not_meet_in_memory() -> None:
    assert {finding.kind for finding in VECTOR.run("stores apart", launch=2).findings} == {"block_race"}


def test_blocks_apart_need_no_order() -> None:
    assert not VECTOR.run("stores by block", launch=3).findings
