"""Sizes of a call, numbers that are read, variables, branches and loops by them, in kernels that are kept."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.frontend.expert import kernels as written
from tests.frontend.expert import scalar_kernels as kernels
from tile_eg.errors import TileError, TileWarning
from tile_eg.ir.program.parser import parse_program

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, kernels.COLS)).astype(np.float32)
IDS = RNG.integers(0, 40, kernels.ROWS).astype(np.int32)


def expected() -> np.ndarray:
    out, below = [], 0
    for i in IDS:
        row = X[i] + (i % 2 == 0)
        below += row[0] <= 0
        out.append((row * 2 if row[0] > 0 else row) + below)
    return np.array(out)


@pytest.mark.slow
def test_rows_at_indices_in_ub_with_branches_and_a_variable() -> None:
    found = kernels.gathered()(X, IDS, np.array([kernels.ROWS], np.int32))
    np.testing.assert_allclose(found, expected(), rtol=1e-6)


def test_an_element_is_read_once_in_a_statement() -> None:
    text = kernels.gathered().get_kernel_source()
    assert len(re.findall(r"ids\[i\]\.GetValue", text)) == 2


@pytest.mark.slow
def test_a_loop_that_is_read_ends_where_it_says() -> None:
    y = np.full((kernels.ROWS, kernels.COLS), 7, np.float32)
    tile_eg.jit(gathered_in_place)(X, IDS, np.array([3], np.int32), y)
    np.testing.assert_allclose(y[:3], expected()[:3], rtol=1e-6)
    assert np.all(y[3:] == 7)


def test_an_index_past_the_end_is_told_with_its_value() -> None:
    ids = np.where(np.arange(kernels.ROWS) == 5, 40, IDS).astype(np.int32)
    with pytest.raises(TileError, match=r"begins at X\[40, 0\](.|\n)*the index 40 is read, and has to be one from 0 to 39"):
        kernels.gathered()(X, ids, np.array([kernels.ROWS], np.int32))


def test_the_text_of_a_kept_kernel_is_shown_at_examples_of_sizes() -> None:
    with pytest.warns(TileWarning, match="at rows=128, starts=128"):
        text = kernels.summed().get_kernel_source()
    assert text.startswith("// summed is kept as it is written, and compiled for the sizes of each call")
    assert kernels.summed().get_kernel_source(rows=128, starts=128) in text


@T.prim_func
def through_a_workspace(X: T.Tensor((4, 64), "float"), Y: T.Tensor((4, 64), "float"), W: T.Tensor((1, 64), "float")):
    with T.Kernel(1, is_npu=True) as _:
        x, y = T.alloc_ub((64,), "float"), T.alloc_ub((64,), "float")
        with T.Scope("V"):
            for i in T.Pipelined(4, num_stages=2):
                T.copy(X[i, 0], x)
                T.tile.add(x, x, 1.0)
                T.copy(x, W[0, 0])
                T.barrier_all()
                T.copy(W[0, 0], y)
                T.barrier_all()
                T.copy(y, Y[i, 0])
                T.barrier_all()


@pytest.mark.slow
def test_what_a_pipelined_loop_stores_is_not_loaded_ahead() -> None:
    switches = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
    kernel = tile_eg.compile(through_a_workspace, out_idx=[1], workspace_idx=[2], pass_configs=switches)
    x = np.random.default_rng(4).standard_normal((4, 64)).astype(np.float32)
    assert (kernel(x) == x + 1).all()


@T.prim_func
def gathered_in_place(
    X: T.Tensor((40, 64), "float"), ids_of: T.Tensor((16,), "int32"), L: T.Tensor((1,), "int32"), Y: T.Tensor((16, 64), "float")
):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        row = T.alloc_ub([64], "float")
        below = T.alloc_var("int32", init=0)
        with T.Scope("V"):
            for i in T.serial(L[0]):
                at = ids_of[i]
                T.copy(X[at, 0], row)
                T.barrier_all()
                if at % 2 == 0:
                    T.tile.add(row, row, 1.0)
                if row[0] > 0.0:
                    T.tile.mul(row, row, 2.0)
                else:
                    below = below + 1
                T.tile.add(row, row, below)
                T.barrier_all()
                T.copy(row, Y[i, 0])
                T.barrier_all()


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(0, 5, 5, 37), (0, 16, 40), (0, 1)])
def test_sizes_of_a_call_and_slices_that_are_read(bounds: tuple[int, ...]) -> None:
    found = kernels.summed()(X, np.array(bounds, np.int32))
    want = [X[a:b].sum(0) for a, b in zip(bounds, bounds[1:], strict=False)]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_no_blocks_at_the_sizes_of_a_call_do_nothing() -> None:
    assert kernels.summed()(X, np.array([0], np.int32)).shape == (0, kernels.COLS)


def test_each_set_of_sizes_has_a_text_of_its_own() -> None:
    one, two = (kernels.summed().get_kernel_source(rows=rows, starts=2) for rows in (40, 48))
    assert one != two


@pytest.mark.slow
def test_while_looks_at_an_element_before_each_trip() -> None:
    x = np.full(kernels.COLS, 9, np.float32)
    assert np.all(kernels.halved()(x) == 0.5625)


@pytest.mark.slow
def test_a_flag_between_cores_may_be_numbered_by_a_loop() -> None:
    a = RNG.uniform(-1, 1, (64, 64)).astype(np.float16)
    found = kernels.flagged()(a)
    np.testing.assert_allclose(found, np.stack([a.astype(np.float32) @ a.astype(np.float32) + 1] * 2), atol=1e-3)


def test_a_wait_that_names_a_pipe_is_told_to_stop_all() -> None:
    (note,) = kernels.flagged().compile().notes
    assert "stops all pipes" in note.text


@pytest.mark.slow
def test_a_name_means_the_number_that_it_was_given() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def kept(A: T.Tensor((64,), "float"), B: T.Tensor((64,), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([64], "float")
            with T.Scope("V"):
                T.copy(A, x)
                T.barrier_all()
                first = x[0]
                T.tile.fill(x, 5.0)
                T.tile.add(x, x, first)
                T.barrier_all()
                T.copy(x, B)

    assert np.all(kept(np.full(64, 3, np.float32)) == 8)


def test_quotients_of_negative_numbers_are_rounded_down() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def divided(N: T.Tensor((1,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([8], "int32")
            with T.Scope("V"):
                n = N[0]
                T.tile.fill(x, n // 4)
                x[1] = n % 4
                T.barrier_all()
                T.copy(x, B)

    assert divided(np.array([-7], np.int32))[:2].tolist() == [-2, 1]


@pytest.mark.slow
def test_an_element_that_is_not_chosen_is_not_read() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def chosen(ids_of: T.Tensor((4,), "int32"), N: T.Tensor((1,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([8], "int32")
            with T.Scope("V"):
                n = N[0]
                T.tile.fill(x, T.if_then_else(n < 4, ids_of[n], -1))
                T.barrier_all()
                T.copy(x, B)

    ids = np.array([9, 8, 7, 6], np.int32)
    assert chosen(ids, np.array([2], np.int32))[0] == 7
    assert chosen(ids, np.array([1 << 20], np.int32))[0] == -1


def test_an_index_outside_its_tensor_is_told_at_its_line() -> None:
    ids = IDS.copy()
    ids[1] = 41
    with pytest.raises(TileError, match="out_of_bounds") as caught:
        kernels.gathered()(X, ids, np.array([2], np.int32))
    assert caught.value.span is not None
    line = caught.value.source.splitlines()[caught.value.span.line - 1]
    assert "T.copy(X[ids[i], 0], row)" in line


def test_elements_of_what_the_kernel_writes_are_not_read_from_gm() -> None:
    with pytest.raises(TileError, match="which the kernel writes"):

        @tile_eg.jit
        @T.prim_func
        def wrong(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x = T.alloc_ub([8], "int32")
                with T.Scope("V"):
                    T.copy(A, x)
                    T.barrier_all()
                    T.copy(x, B)
                    T.barrier_all()
                    T.tile.fill(x, B[0])
                    T.barrier_all()
                    T.copy(x, B)


def test_the_cube_core_does_not_read_ub() -> None:
    with pytest.raises(TileError, match="the cube core"):

        @tile_eg.jit
        @T.prim_func
        def wrong(A: T.Tensor((64, 64), "float16"), N: T.Tensor((8,), "int32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                n = T.alloc_ub([8], "int32")
                a = T.alloc_L1((64, 64), "float16")
                with T.Scope("V"):
                    T.copy(N, n)
                with T.Scope("C"):
                    T.copy(A[n[0], 0], a)


def test_a_slice_that_may_not_fit_is_told_with_a_way_out() -> None:
    with pytest.raises(TileError, match="more than the 16 rows") as caught:

        @tile_eg.jit
        @T.prim_func
        def wrong(A: T.Tensor((64, 64), "float"), N: T.Tensor((1,), "int32"), B: T.Tensor((16, 64), "float")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                x = T.alloc_ub([16, 64], "float")
                with T.Scope("V"):
                    n = N[0]
                    T.copy(A[0:n, 0:64], x)
                    T.barrier_all()
                    T.copy(x, B)

    assert "T.min(n, 16)" in caught.value.help


@pytest.mark.slow
def test_a_flag_of_the_framework_gets_another_number_with_a_note() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def seventh(A: T.Tensor((64,), "float"), B: T.Tensor((64,), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([64], "float")
            with T.Scope("V"):
                T.copy(A, x)
                T.set_flag("mte2", "v", 6)
                T.wait_flag("mte2", "v", 6)
                T.tile.add(x, x, 1.0)
                T.barrier_all()
                T.copy(x, B)

    assert np.all(seventh(np.zeros(64, np.float32)) == 1)
    assert "number 0 instead" in seventh.compile().notes[0].text


@pytest.mark.slow
def test_if_then_and_else_as_scopes() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def branched(N: T.Tensor((1,), "int32"), B: T.Tensor((8,), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([8], "float")
            with T.Scope("V"):
                n = N[0]
                with T.If(n > 2):
                    with T.Then():
                        T.tile.fill(x, 1.0)
                    with T.Else():
                        T.tile.fill(x, 2.0)
                T.barrier_all()
                T.copy(x, B)

    assert branched(np.array([3], np.int32))[0] == 1
    assert branched(np.array([2], np.int32))[0] == 2


@pytest.mark.slow
def test_if_and_then_in_one_line() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def branched(N: T.Tensor((1,), "int32"), B: T.Tensor((8,), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([8], "float")
            with T.Scope("V"):
                n = N[0]
                T.tile.fill(x, 2.0)
                T.barrier_all()
                with T.If(n > 2), T.Then():
                    T.tile.fill(x, 1.0)
                T.barrier_all()
                T.copy(x, B)

    assert branched(np.array([3], np.int32))[0] == 1
    assert branched(np.array([2], np.int32))[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("word", ["sigmoid", "silu", "tanh"])
def test_functions_without_an_instruction(word: str) -> None:
    apply = getattr(T.tile, word)

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def applied(A: T.Tensor((64,), "float"), B: T.Tensor((64,), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub([64], "float")
            with T.Scope("V"):
                T.copy(A, x)
                T.barrier_all()
                apply(x, x)
                T.barrier_all()
                T.copy(x, B)

    a = X[0, :64]
    want = {"sigmoid": 1 / (1 + np.exp(-a)), "silu": a / (1 + np.exp(-a)), "tanh": np.tanh(a)}[word]
    np.testing.assert_allclose(applied(a), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "kernel", [kernels.gathered, kernels.halved, kernels.flagged, written.running_sum, written.normalised, written.ring]
)
def test_the_text_of_a_program_is_read_back(kernel: Any) -> None:
    program = kernel().compile().program
    assert parse_program(str(program)) == program


@T.macro
def squared(A, W):
    a = T.alloc_L1((64, 64), "float16")
    c = T.alloc_L0C((64, 64), "float")
    with T.Scope("C"):
        T.copy(A, a)
        T.barrier_all()
        T.gemm_v0(a, a, c, init=True)
        T.copy(c, W)


@T.macro
def passed_on(W, C, vid):
    x = T.alloc_ub((32, 64), "float")
    with T.Scope("V"):
        T.copy(W[vid * 32, 0], x)
        T.barrier_all()
        T.copy(x, C[vid * 32, 0])


def handed_over(cube_first: bool, switch: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float"), C: T.Tensor((64, 64), "float")):
        with T.Kernel(1, is_npu=True) as (_cid, vid):
            if cube_first:
                squared(A, W)
            passed_on(W, C, vid)
            if not cube_first:
                squared(A, W)

    configs = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: switch}
    return tile_eg.compile(main, out_idx=[-1], workspace_idx=[1], pass_configs=configs)


@pytest.mark.slow
def test_a_switch_asks_for_flags_between_cores_that_the_author_did_not_write() -> None:
    a = np.random.default_rng(2).uniform(-1, 1, (64, 64)).astype(np.float16)
    np.testing.assert_allclose(handed_over(True, True)(a), a.astype(np.float32) @ a.astype(np.float32), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_without_flags_between_cores_what_is_handed_over_is_a_race() -> None:
    with pytest.raises(TileError, match="race") as caught:
        handed_over(True, False)(np.ones((64, 64), np.float16))
    assert 'T.set_cross_flag("fix", n)' in caught.value.message and "T.wait_cross_flag(n)" in str(caught.value.help)


def test_flags_are_not_found_for_what_is_read_before_it_is_written() -> None:
    with pytest.raises(TileError, match="`W` is read before it is written"):
        handed_over(False, True)


@T.prim_func
def in_turns(X: T.Tensor((4, 64), "float"), Y: T.Tensor((4, 64), "float")):
    with T.Kernel(1, is_npu=True) as _:
        x = T.alloc_ub((2, 64), "float")
        with T.Scope("V"):
            T.set_flag("mte3", "mte2", 5)
            T.set_flag("mte3", "mte2", 6)
            for i in T.serial(4):
                T.wait_flag("mte3", "mte2", 5 + i % 2)
                T.copy(X[i, 0], x[i % 2, :])
                T.set_flag("mte2", "mte3", 5 + i % 2)
                T.wait_flag("mte2", "mte3", 5 + i % 2)
                T.copy(x[i % 2, :], Y[i, 0])
                T.set_flag("mte3", "mte2", 5 + i % 2)
            T.wait_flag("mte3", "mte2", 5)
            T.wait_flag("mte3", "mte2", 6)


@pytest.mark.slow
def test_flags_whose_numbers_are_computed_move_down_together() -> None:
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    kernel = tile_eg.compile(in_turns, out_idx=[-1])
    assert (kernel(x) == x).all()
    assert "flags 5 to 6 from mte3 to mte2 are numbers 0 to 1 instead" in [n.text for n in kernel.compile().notes][0]


def stored_by_both(by_block: float) -> Any:
    @T.prim_func
    def main(Y: T.Tensor((1, 64), "float")):
        with T.Kernel(2, is_npu=True) as b:
            x = T.alloc_ub((1, 64), "float")
            with T.Scope("V"):
                T.tile.fill(x, 1.0)
                T.barrier_all()
                T.tile.add(x, x, b * by_block)
                T.barrier_all()
                T.copy(x, Y)

    return tile_eg.compile(main, out_idx=[-1])


@pytest.mark.slow
def test_blocks_may_store_equal_values_to_one_place() -> None:
    assert (stored_by_both(0.0)() == 1).all()


@pytest.mark.slow
def test_blocks_that_store_different_values_to_one_place_race() -> None:
    with pytest.raises(TileError, match="race"):
        stored_by_both(1.0)()


# ---- elements as operands of vector instructions ----------------------------------------------------------------------------


def scaled(step: Any) -> Any:
    """Rows of X times 2 by way of two slots; nothing but the step itself frees what MTE3 and V read in the trip before."""

    @T.prim_func
    def scaled(X: T.Tensor((4, 64), "float"), Y: T.Tensor((4, 64), "float")):
        with T.Kernel(1) as _:  # noqa: SIM117
            with T.Scope("V"):
                x, y, two = T.alloc_ub((2, 64), "float"), T.alloc_ub((64,), "float"), T.alloc_ub((8,), "float")
                T.tile.fill(two, 2.0)
                for i in T.serial(4):
                    T.copy(X[i, :], x[i % 2, :])
                    T.set_flag("mte2", "v", 0)
                    T.wait_flag("mte2", "v", 0)
                    step(x, i % 2, y, two)
                    T.set_flag("v", "mte3", 0)
                    T.wait_flag("v", "mte3", 0)
                    T.copy(y, Y[i, :])

    return tile_eg.compile(scaled, out_idx=[-1])


@T.macro
def by_an_element(x, slot, y, two):
    T.tile.mul(y, x[slot, :], two[0])


@T.macro
def by_an_expression(x, slot, y, two):
    T.tile.mul(y, x[slot, :], two[0] * 1.0)


@T.macro
def by_a_name(x, slot, y, two):
    s = two[0]
    T.tile.mul(y, x[slot, :], s)


@T.macro
def by_an_element_in_a_loop(x, slot, y, two):
    for j in T.Parallel(64):
        y[j] = x[slot, j] * two[0]


@pytest.mark.slow
@pytest.mark.parametrize("step", [by_an_element, by_an_element_in_a_loop])
def test_all_pipes_finish_before_an_element_is_an_operand_as_in_tilelang(step: Any) -> None:
    kernel = scaled(step)
    assert kernel.get_kernel_source().count("PipeBarrier<PIPE_ALL>()") == 1
    assert (kernel(X[:4]) == 2 * X[:4]).all()


@pytest.mark.slow
@pytest.mark.parametrize("step", [by_an_expression, by_a_name])
def test_they_do_not_for_an_element_with_a_name_or_in_an_expression(step: Any) -> None:
    with pytest.raises(TileError, match="race: WAR"):
        scaled(step)(X[:4])


# ---- outputs that are written in part ---------------------------------------------------------------------------------------


def first_rows(dtype: str) -> Any:
    @T.prim_func
    def first_rows(X: T.Tensor((8, 64), dtype), N: T.Tensor((1,), "int32"), Y: T.Tensor((8, 64), dtype)):
        with T.Kernel(1) as _:  # noqa: SIM117
            with T.Scope("V"):
                x = T.alloc_ub((64,), dtype)
                for i in T.serial(N[0]):
                    T.copy(X[i, :], x)
                    T.barrier_all()
                    T.copy(x, Y[i, :])
                    T.barrier_all()

    return tile_eg.compile(first_rows, out_idx=[-1])


@pytest.mark.slow
def test_what_a_kept_kernel_does_not_write_is_nan_with_a_warning() -> None:
    with pytest.warns(TileWarning, match="192 of 512 elements of Y are never written, the first is Y.5, 0.: they are NaN"):
        got = first_rows("float")(X[:8], np.array([5], np.int32))
    assert (got[:5] == X[:5]).all() and np.isnan(got[5:]).all()


@pytest.mark.slow
def test_whole_numbers_that_it_does_not_write_are_refused() -> None:
    with pytest.raises(TileError, match="192 of 512 elements of Y are never written"):
        first_rows("int32")(np.zeros((8, 64), np.int32), np.array([5], np.int32))
