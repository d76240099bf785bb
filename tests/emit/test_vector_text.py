"""Every vector instruction's Ascend C computes what the instruction means: any shape, tail, pitch and type."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tile_eg.emit.ascend_c.index import EmitError
from tile_eg.ops.types import BF16, F16, F32

from .vector_cases import OPS, Case, check

CASTS = [(F32, F16), (F16, F32), (F32, BF16), (BF16, F32)]


def typed(op: str, n: int, **fields: object) -> Case:
    dtype, target = CASTS[n % 4] if op == "vcast" else (F32 if op == "vramp" else (F32, F16)[n % 2], F32)
    return Case(op, dtype, target=target, **fields)  # type: ignore[arg-type]


SHAPES = {
    "a tile that fills whole blocks": {"rows": 16, "cols": 64},
    "one row": {"rows": 1, "cols": 37},
    "one element": {"rows": 1, "cols": 1},
    "one column": {"rows": 9, "cols": 1},
    "rows that end inside a block": {"rows": 7, "cols": 19},
    "many chunks of columns": {"rows": 3, "cols": 300},
    "a pitch wider than the columns": {"rows": 8, "cols": 40, "gap": 2},
    "more rows than a repeat holds": {"rows": 300, "cols": 8},
    "rows too far apart for a repeat stride": {"rows": 2, "cols": 2100, "gap": 150},
}
TAILS = {
    "fewer rows in the last block": {"rows": 16, "cols": 40, "tail": 5},
    "fewer columns in the last block": {"rows": 6, "cols": 150, "tail": 70, "by_cols": True},
    "one column in the last block": {"rows": 6, "cols": 16, "tail": 1, "by_cols": True},
}

ALL = SHAPES | TAILS
LONG = ("one element", "one column in the last block")
"""Shapes that `make long` tries: others have each half of what they are."""


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("shape", [pytest.param(s, id=n, marks=[pytest.mark.long] * (n in LONG)) for n, s in ALL.items()])
def test_every_instruction_computes_its_meaning_on(shape: dict[str, int]) -> None:
    check([typed(op, n, **shape) for n in range(2) for op in OPS if shape["rows"] * shape["cols"] < 5000 or op != "vcast"])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    op = draw(st.sampled_from(OPS))
    rows, cols = draw(st.integers(1, 40)), draw(st.integers(1, 200))
    by_cols = draw(st.booleans())
    tail = draw(st.integers(0, (cols if by_cols else rows) - 1)) if draw(st.booleans()) else 0
    more = {"gap": draw(st.integers(0, 3)), "swap": draw(st.booleans()), "scalar": draw(st.sampled_from([0.25, 1.5, -2.0]))}
    if not op.endswith(("_rows", "_cols", "_outer")) or op.startswith("vmuladd"):
        more["swap"] = False
    return typed(op, draw(st.integers(0, 3)), rows=rows, cols=cols, tail=tail, by_cols=by_cols and tail > 0, **more)


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(cases(), min_size=12, max_size=24))
def test_random_instructions_on_random_tiles_compute_their_meaning(drawn: list[Case]) -> None:
    check(drawn)


@pytest.mark.slow
def test_a_choice_takes_whole_rounds_flat_and_the_rest_row_by_row() -> None:
    whole, odd, tail = {"rows": 4, "cols": 128}, {"rows": 3, "cols": 70, "gap": 1}, {"rows": 8, "cols": 128, "tail": 3}
    narrow = {"rows": 4, "cols": 70, "tail": 33, "by_cols": True}
    forms = [
        (f"v{kind}_{op}", shape) for kind in ("choose", "chooses", "mask") for op in ("lt", "eq") for shape in (whole, odd, tail)
    ]
    check(
        [
            typed(op, n, **shape)
            for n, (op, shape) in enumerate([*forms, ("vchoose_ne", narrow), ("vchooses_gt", narrow), ("vmask_ge", narrow)])
        ]
    )


@pytest.mark.slow
def test_positions_count_along_rows_and_columns() -> None:
    check([Case("vramp", F32, 9, 70, swap=swap, tail=4, by_cols=by_cols) for swap in (False, True) for by_cols in (False, True)])


@pytest.mark.slow
def test_both_ends_of_a_reduction_stay_inside_the_valid_columns() -> None:
    check([Case(f"vrow{r}", F32, 4, 70, tail=3) for r in ("max", "sum", "min")] + [Case("vdiv_rows", F32, 9, 70, swap=True)])


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("cols", [64, 128, 192, 512, 576, 640, 1024, 1536, 4096])
def test_a_reduction_by_blocks_computes_what_one_by_rows_does(cols: int) -> None:
    check(
        [
            Case(f"vrow{r}", F32, rows, cols, blocks=True)
            for r in ("max", "sum", "min")
            for rows in (1, 4, 8, 24)
            if rows * cols <= 24576
        ]
    )


@pytest.mark.slow
def test_columns_reduced_by_halves_are_those_reduced_row_by_row() -> None:
    whole, short = {"rows": 21, "cols": 64}, {"rows": 6, "cols": 150, "tail": 70, "by_cols": True}
    forms = [("halves", whole), ("folded", whole), ("folded", short), ("folded", {"rows": 5, "cols": 300, "gap": 1})]
    forms += [("folded", {"rows": 40, "cols": 8}), ("folded", {"rows": 7, "cols": 19})]
    kinds = [(f"vcol{r}", dtype) for r in ("max", "sum") for dtype in (F32, F16)]
    check([Case(op, dtype, halves=form, **shape) for op, dtype in kinds for form, shape in forms])


@pytest.mark.slow
def test_rows_reduced_by_halves_of_their_chunks_are_those_reduced_chunk_by_chunk() -> None:
    shapes = [{"rows": 3, "cols": 1500}, {"rows": 20, "cols": 512, "tail": 7}, {"rows": 2, "cols": 900, "gap": 1}]
    shapes.append({"rows": 1, "cols": 640})
    kinds = [(f"vrow{r}", dtype) for r in ("max", "sum", "min") for dtype in (F32, F16)]
    check([Case(op, dtype, halves="halves", **shape) for op, dtype in kinds for shape in shapes])


@pytest.mark.slow
@pytest.mark.parametrize("cols", [64, 128, 512, 576, 1024])
def test_sums_of_products_go_through_the_room_of_half_of_them(cols: int) -> None:
    check([Case("vrowdot", F32, rows, cols) for rows in (2, 4, 12) if rows * cols <= 8192])


@pytest.mark.parametrize("bad", [{"cols": 96}, {"gap": 1}, {"dtype": F16}, {"rows": 3}], ids=str)
def test_sums_of_products_refuse_what_has_no_equal_parts(bad: dict) -> None:
    with pytest.raises(EmitError, match="takes whole rows of f32 in 2 parts"):
        check([Case(**{"op": "vrowdot", "dtype": F32, "rows": 16, "cols": 128, **bad})])


@pytest.mark.slow
@pytest.mark.parametrize("tail", [0, 3])
def test_long_rows_meet_their_operand_in_either_bank_group(tail: int) -> None:
    rows = [(op, dtype, n) for op in ("vsub_rows", "vdiv_rows") for dtype in (F32, F16) for n in (4, 8, 12)]
    check([Case(op, dtype, n, 1024 // dtype.bytes * 2, tail=tail, swap=n == 8, apart=True) for op, dtype, n in rows])


def test_pieces_of_rows_that_end_early_are_refused() -> None:
    with pytest.raises(EmitError, match="whole stretches of 512 bytes"):
        check([Case("vsub_rows", F32, 4, 512 + 70, apart=True)])


@pytest.mark.slow
def test_rows_of_more_than_255_repeats_take_several_calls() -> None:
    check([Case("vsub_rows", F32, 1, 64 * 256 + 70)])


@pytest.mark.slow
def test_rows_whose_repeats_only_run_time_knows_take_several_calls() -> None:
    check([Case("vsub_rows", F32, 1, 64 * 300, tail=64 * 258 + 3, by_cols=True)])


@pytest.mark.slow
def test_a_reduction_by_blocks_splits_at_255_repeats() -> None:
    check([Case("vrowmax", F32, 267, 64, blocks=True)])


@pytest.mark.parametrize("bad", [{"cols": 96}, {"gap": 1}, {"dtype": F16}], ids=str)
def test_a_reduction_by_blocks_refuses_what_blocks_do_not_fill(bad: dict) -> None:
    with pytest.raises(EmitError, match="blocks take whole rows of f32"):
        check([Case(**{"op": "vrowsum", "dtype": F32, "rows": 16, "cols": 128, "blocks": True, **bad})])
