"""What one instruction costs: exact arithmetic of each formula, and laws that every formula keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_eg.chips import load_chip
from tile_eg.errors import TileError
from tile_eg.ir.machine import block_steps
from tile_eg.ir.program import PIPES, VECTOR
from tile_eg.ops.elementwise import OF_TWO_FLOATS
from tile_eg.ops.types import BF16, F16, F32
from tile_eg.timeline.instruction import (
    burst_bytes,
    cycles,
    gm_bytes,
    line_bytes,
    mmad_fractals,
    moved_bytes,
)
from tile_eg.timeline.vector_cycles import _block_reduce
from tile_eg.timeline.work import Work

CHIP = load_chip("910B2")
DIRECT = {"ub_to_l1", "l1_to_ub"}  # paths of the 950 alone
MOVES = sorted({*PIPES} - DIRECT)
OF_ONE_TILE = {
    f"v{name}{form}"
    for name in [*OF_TWO_FLOATS, "shl", "shr", "xor"]
    for form in ("", "_rows", "_cols", "_outer")
}
"""Between two tiles there is no instruction for these: a number is one operand, or others compute them."""
OPS = sorted({*MOVES, *VECTOR} - OF_ONE_TILE)
SIZES = st.integers(1, 300)


def mmad(m: int, n: int, k: int, dtype: object = F16) -> Work:
    return Work("mmad", m, n, k, F32, dtype)  # type: ignore[arg-type]


def test_mmad_takes_a_cycle_for_each_fractal() -> None:
    assert cycles(CHIP, mmad(128, 256, 64)) == pytest.approx(2.4 + 0.992 * 8 * 16 * 4)


def test_an_isolated_mmad_pays_its_start_up() -> None:
    assert cycles(CHIP, mmad(16, 16, 16), cold=True) == pytest.approx(23.1 + 0.992)


def test_float_products_take_four_times_as_long_for_the_same_macs() -> None:
    each = cycles(CHIP, mmad(128, 128, 128, F32)) - CHIP.cube.issue
    assert each == pytest.approx(4 * (cycles(CHIP, mmad(128, 128, 128, F16)) - CHIP.cube.issue))


def test_bf16_products_cost_what_half_products_cost() -> None:
    assert cycles(CHIP, mmad(64, 64, 64, BF16)) == cycles(CHIP, mmad(64, 64, 64, F16))


@given(SIZES, SIZES, SIZES)
def test_every_dimension_of_a_product_is_padded_to_its_fractal(m: int, n: int, k: int) -> None:
    up = [-(-v // 16) * 16 for v in (m, n, k)]
    assert mmad_fractals(mmad(m, n, k)) == mmad_fractals(mmad(*up)) == up[0] * up[1] * up[2] // 4096


@pytest.mark.parametrize(("row", "moved"), [(2, 128), (128, 128), (130, 256), (400, 512), (512, 512), (600, 640), (1024, 1024)])
def test_rows_are_rounded_up_to_bursts(row: int, moved: int) -> None:
    assert burst_bytes(CHIP, row) == moved


@pytest.mark.parametrize(
    ("row", "align", "moved"), [(512, 512, 512), (512, 2, 1022), (2048, 2, 2558), (640, 128, 1024), (64, 2, 128)]
)
def test_rows_off_512_bytes_touch_more_lines(row: int, align: int, moved: int) -> None:
    assert line_bytes(CHIP, row, align) == moved


def test_rows_off_512_bytes_are_slower() -> None:
    straight = Work("gm_to_l1", 64, 256, dtype=F16, stride_bytes=1024, cores=24, miss=1.0)
    assert cycles(CHIP, replace(straight, stride_bytes=1022)) > 1.4 * cycles(CHIP, straight)


def test_a_first_row_off_512_bytes_puts_the_others_off() -> None:
    straight = Work("gm_to_l1", 64, 256, dtype=F16, stride_bytes=1024, miss=1.0)
    assert cycles(CHIP, replace(straight, align_bytes=64)) == cycles(CHIP, replace(straight, stride_bytes=1024 + 64))


def shared(missed: float, cores: float = 1) -> float:
    """Cycles of a panel of 128 x 256 of which a part is not in L2, read by so many cores at the same time."""
    panel = Work("gm_to_l1", 128, 256, dtype=F16, src_dtype=F16, stride_bytes=4096, cores=1, other="GM")
    return cycles(CHIP, replace(panel, miss=missed, sharing=cores))


def test_rows_that_l2_lacks_are_not_made_up_for_by_others() -> None:
    path = CHIP.path("gm_to_l1_nd2nz")
    more = 32 * (512 / path.miss_peak - (path.row + 512 / path.peak))
    assert shared(0.25) - shared(0.0) == pytest.approx(more)


def test_every_core_waits_for_a_line_that_hbm_brings_once_for_all() -> None:
    assert shared(0.25, 4) == pytest.approx(shared(1.0))
    assert shared(0.25, 2) == pytest.approx(shared(0.5))


def test_rows_that_follow_each_other_are_one_burst() -> None:
    assert gm_bytes(CHIP, Work("gm_to_ub", 64, 24)) == burst_bytes(CHIP, 64 * 24 * 4)


def test_spread_rows_are_rounded_one_by_one() -> None:
    assert gm_bytes(CHIP, Work("gm_to_ub", 64, 24, stride_bytes=512)) == 64 * 128


def test_nd2nz_copies_go_row_by_row_even_where_rows_follow_each_other() -> None:
    assert gm_bytes(CHIP, Work("gm_to_l1", 64, 48, dtype=F16)) == 64 * 128


def test_a_load_of_the_vector_core_back_to_back() -> None:
    assert cycles(CHIP, Work("gm_to_ub", 64, 128)) == pytest.approx(13 + 64 * 512 / 126)


def test_a_small_isolated_load_takes_its_latency() -> None:
    assert cycles(CHIP, Work("gm_to_ub", 1, 8), cold=True) == pytest.approx(192 + 128 / 126)


def test_short_rows_of_an_nd2nz_copy_take_3_4_cycles_each() -> None:
    assert cycles(CHIP, Work("gm_to_l1", 64, 64, dtype=F16)) == pytest.approx(40 + 64 * 3.4)


def test_long_rows_of_an_nd2nz_copy_take_two_cycles_a_request_and_their_bytes() -> None:
    assert cycles(CHIP, Work("gm_to_l1", 64, 512, dtype=F16)) == pytest.approx(40 + 64 * (2 * 2 + 1024 / 127))


@pytest.mark.parametrize(
    ("pitch", "requests"), [(8192, 1), (8192 + 256, 2), (8192 + 128, 4), (8000, 8), (8192 + 32, 16), (8190, 16)]
)
def test_rows_of_an_nd2nz_copy_are_cut_by_where_they_start(pitch: int, requests: int) -> None:
    copy = Work("gm_to_l1", 64, 256, dtype=F16, stride_bytes=pitch)
    assert cycles(CHIP, copy) == pytest.approx(40 + 64 * (2 * requests + 512 / 127))


def test_what_is_not_in_l2_comes_at_the_pace_of_hbm() -> None:
    load = Work("gm_to_ub", 64, 1024, dtype=F16, stride_bytes=4096, cores=48, miss=1.0)
    assert cycles(CHIP, load) == pytest.approx(13 + 64 * 2048 * 48 / CHIP.shared.hbm_read * 1.8e9)


def test_more_cores_get_less_each() -> None:
    one = Work("fixpipe", 128, 256, dtype=F16)
    assert cycles(CHIP, replace(one, cores=24)) > cycles(CHIP, one)


def test_the_way_to_l0b_is_half_as_wide_as_the_way_to_l0a() -> None:
    a = cycles(CHIP, Work("l1_to_l0a", 128, 1, 128, F16, F16)) - 23.5
    assert cycles(CHIP, Work("l1_to_l0b", 1, 128, 128, F16, F16)) - 23.5 == 2 * a == 256


def test_fixpipe_to_l1_moves_64_elements_a_cycle() -> None:
    assert cycles(CHIP, Work("fixpipe", 128, 128, dtype=F16, other="L1")) == pytest.approx(20 + 128 * 128 / 64)


def test_exp_of_floats_takes_two_cycles_for_64() -> None:
    assert cycles(CHIP, Work("vexp", 64, 64)) == 128


def test_a_rows_form_repeats_once_a_row_in_each_column_chunk() -> None:
    assert cycles(CHIP, Work("vmuls", 64, 100, form="rows", pitch=104)) == 2 * 64


def test_a_flat_form_processes_the_padding_between_rows() -> None:
    assert cycles(CHIP, Work("vmuls", 64, 100, pitch=128)) == 128


def test_a_count_that_fills_no_repeat_pays_the_tail() -> None:
    assert cycles(CHIP, Work("vmuls", 1, 129)) == 3 + 16


def test_half_fits_twice_as_many_elements_in_a_repeat() -> None:
    assert cycles(CHIP, Work("vadds", 64, 64, dtype=F16, src_dtype=F16)) * 2 == cycles(CHIP, Work("vadds", 64, 64))


def test_sources_in_different_bank_groups_double_the_rate() -> None:
    work = Work("vadd", 64, 64)
    assert cycles(CHIP, work) == 2 * cycles(CHIP, replace(work, conflict=False))


def test_the_repeat_of_a_broadcast_runs_the_longer_way() -> None:
    wide = Work("vmul_cols", 2, 4096, form="rows", conflict=False)
    assert cycles(CHIP, wide) == cycles(CHIP, replace(wide, rows=64, cols=128)) == 2 * 64


def test_a_cast_counts_its_wider_side() -> None:
    narrow, wide = Work("vcast", 64, 64, dtype=F16, src_dtype=F32), Work("vcast", 64, 64, dtype=F32, src_dtype=F16)
    assert cycles(CHIP, narrow) == cycles(CHIP, wide) == 64


def test_a_row_maximum_folds_chunks_then_reduces_each_row() -> None:
    assert cycles(CHIP, Work("vrowmax", 64, 192)) == 64 + 2 * 64 + 2 * CHIP.vector.ops["max", 4].fixed + 64 * 7


def test_an_operand_in_both_bank_groups_is_never_met() -> None:
    work = Work("vsub_rows", 8, 1024, form="apart", conflict=False)
    assert cycles(CHIP, work) == 8 * 16
    assert cycles(CHIP, replace(work, conflict=True)) == 2 * cycles(CHIP, work)


@pytest.mark.parametrize("cols", [64, 128, 192, 512, 576, 1024, 2048, 4096, 7168, 8192])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_few_rows_are_reduced_no_slower_than_by_blocks_alone(rows: int, cols: int) -> None:
    many = _block_reduce(CHIP, "sum", work := Work("vrowsum", rows, cols, form="blocks"), True, block_steps(cols))
    assert cycles(CHIP, work, cold=True) <= many


def test_sums_of_products_pay_two_barriers_more_than_products_and_sums() -> None:
    mul, add = CHIP.vector.ops["mul", 4], CHIP.vector.ops["blocksum", 4]
    both = cycles(CHIP, Work("vmul", 16, 1024)) + cycles(CHIP, Work("vrowsum", 16, 1024, form="blocks"))
    assert cycles(CHIP, Work("vrowdot", 16, 1024)) == both + 2 * mul.fixed + add.fixed


@pytest.mark.parametrize("rows", [4, 7, 16, 64])
def test_halves_under_a_mask_take_no_less_than_whole_ones_and_less_than_a_row_at_a_time(rows: int) -> None:
    folded, whole, one = (cycles(CHIP, Work("vcolsum", rows, 192, form=form)) for form in ("folded", "halves", "rows"))
    assert whole <= folded < one


@pytest.mark.parametrize(("rows", "cols"), [(1, 1024), (2, 7168), (16, 900)])
def test_halves_of_chunks_take_less_than_a_chunk_at_a_time(rows: int, cols: int) -> None:
    halves, each = (cycles(CHIP, Work("vrowmax", rows, cols, dtype=F16, form=form)) for form in ("halves", "rows"))
    assert halves < each


def test_sources_that_meet_in_half_of_the_rounds_take_half_as_much_more() -> None:
    assert cycles(CHIP, Work("vsub_rows", 64, 256, conflict=0.5)) == 2 * 64 + 2 * 128


def test_a_row_whose_columns_fill_no_repeat_pays_the_tail_each_time() -> None:
    assert cycles(CHIP, Work("vmuls", 2, 300, form="rows")) == 2 * (5 + 16)


def test_a_tile_that_is_put_elsewhere_is_copied_before() -> None:
    put = Work("vput", 32, 64, form="rows")
    whole = 64 + CHIP.vector.ops["adds", 4].fixed
    assert cycles(CHIP, replace(put, depth=64 * 64)) == cycles(CHIP, put) + whole


def test_a_choice_by_rows_writes_its_numbers_first() -> None:
    one, two = (cycles(CHIP, Work(f"v{kind}_eq", 4, 64, form="rows")) for kind in ("choose", "mask"))
    dup = CHIP.vector.ops["dup", 4]
    assert two == one + 2 * dup.floor + dup.fixed


def test_a_ramp_of_ones_is_an_index_alone() -> None:
    assert cycles(CHIP, Work("vramp", 1, 64, form="index")) == CHIP.vector.ops["dup", 4].floor


def test_a_row_maximum_of_one_chunk_folds_nothing() -> None:
    assert cycles(CHIP, Work("vrowmax", 64, 50)) == 64 * 7


def test_a_column_sum_adds_row_after_row() -> None:
    add, copy = CHIP.vector.ops["add", 4].fixed, CHIP.vector.ops["adds", 4].fixed
    assert cycles(CHIP, Work("vcolsum", 10, 128)) == 3 + copy + 9 * max(3, 2 * 2) + 8 * add


def test_brcb_takes_a_repeat_for_eight_elements() -> None:
    assert cycles(CHIP, Work("vbrcb", 128, 8)) == 16


def test_more_than_255_repeats_take_more_instructions() -> None:
    assert cycles(CHIP, Work("vadds", 256, 64, form="rows")) == 255 + CHIP.vector.ops["adds", 4].floor


def test_bytes_of_a_load_into_l0b() -> None:
    assert moved_bytes(Work("l1_to_l0b", 1, 256, 64, F16, F16)) == 256 * 64 * 2


def test_bytes_of_a_fixpipe_are_those_of_its_destination() -> None:
    assert moved_bytes(Work("fixpipe", 128, 64, dtype=F16, src_dtype=F32)) == 128 * 64 * 2


def test_a_computation_moves_nothing() -> None:
    assert moved_bytes(Work("vexp", 128, 64)) == 0


def test_pipes_are_named_with_their_core() -> None:
    assert [Work(op, 1, 1).pipe for op in ("gm_to_ub", "gm_to_l1", "vexp")] == ["AIV.MTE2", "AIC.MTE2", "AIV.V"]


@pytest.mark.parametrize("op", OPS)
def test_an_empty_tile_costs_nothing(op: str) -> None:
    assert cycles(CHIP, Work(op, 0, 16, 16)) == 0


@pytest.mark.slow(but=6)
@pytest.mark.parametrize("op", OPS)
@given(rows=SIZES, cols=SIZES, depth=SIZES)
def test_an_isolated_instruction_is_never_quicker(op: str, rows: int, cols: int, depth: int) -> None:
    work = Work(op, rows, cols, depth, src_dtype=F16)
    assert cycles(CHIP, work, cold=True) >= cycles(CHIP, work) > 0


@pytest.mark.slow
@pytest.mark.parametrize("op", [*MOVES, "vrowmax", "vrowsum", "vcolsum", "vadd_rows", "vbrcb"])
@given(rows=SIZES, more=SIZES, cols=SIZES)
def test_more_rows_never_take_less(op: str, rows: int, more: int, cols: int) -> None:
    few = Work(op, rows, cols, 16, F16, F16, stride_bytes=2048)
    assert cycles(CHIP, replace(few, rows=rows + more)) >= cycles(CHIP, few)


FOLD, BLOCK = CHIP.vector.ops["max", 4].fixed, CHIP.vector.ops["blockmax", 4].fixed


def test_a_row_maximum_by_blocks_takes_a_cycle_for_64_floats() -> None:
    fold, first, second = 64, 64, 8
    assert cycles(CHIP, Work("vrowmax", 64, 128, form="blocks")) == fold + first + second + FOLD + BLOCK


def test_long_rows_are_reduced_by_blocks_before_they_are_folded() -> None:
    assert cycles(CHIP, Work("vrowmax", 8, 512, form="blocks")) == 64 + 8 + 3 + 2 * BLOCK


# ---- paths of the 950 -------------------------------------------------------------------------------------------------------

A5 = load_chip("950")


def test_a_fixpipe_into_ub_takes_half_as_long_into_both_vector_cores() -> None:
    one, both = (cycles(A5, Work("fixpipe", 128, 128, other="UB", form=form)) for form in ("flat", "dual"))
    assert one - A5.paths["l0c_to_ub"].issue == 2 * (both - A5.paths["l0c_to_ub_dual"].issue) == 128 * 128 * 4 / 128


@pytest.mark.parametrize(("op", "copies"), [("ub_to_l1", 4), ("l1_to_ub", 8)])
def test_between_ub_and_l1_a_cycle_moves_128_bytes_by_a_copy_for_each_column_of_blocks_and_core(op: str, copies: int) -> None:
    assert cycles(A5, Work(op, 64, 64, dtype=F16)) == copies * A5.paths[op].issue + 64 * 64 * 2 / 128


@pytest.mark.parametrize("work", [Work("fixpipe", 16, 16, other="UB"), Work("ub_to_l1", 16, 16), Work("l1_to_ub", 16, 16)])
def test_a_chip_without_the_path_says_so(work: Work) -> None:
    with pytest.raises(TileError, match="910B2 has no path from "):
        cycles(CHIP, work)


@pytest.mark.parametrize("chip", ["910B2", "950"])
def test_rows_that_the_fixpipe_stores_off_a_block_take_more_for_each_block(chip: str) -> None:
    c = load_chip(chip)
    off, on = (Work("fixpipe", 64, 256, stride_bytes=n, cores=1) for n in (8152, 8160))
    assert cycles(c, off) - cycles(c, on) == pytest.approx(64 * 33 * c.paths["l0c_to_gm"].off_block)
    assert cycles(c, replace(off, rows=1)) == cycles(c, replace(on, rows=1))
