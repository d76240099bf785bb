"""Kernels with flags, barriers and scopes are kept: right numbers, and what is wrong is told at the author's line."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.frontend.expert import kernels
from tile_eg.errors import TileError
from tile_eg.frontend.expert import is_kept
from tile_eg.ir.kept import KeptKernel
from tile_eg.jit import CompiledKernel
from tile_eg.search.kept import PlannedKept

RNG = np.random.default_rng(0)
X, Y = (RNG.standard_normal((64, 64)).astype(np.float32) for _ in range(2))


def halves(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float16)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def fault(kernel: CompiledKernel, *arrays: np.ndarray) -> TileError:
    with pytest.raises(TileError) as caught:
        kernel(*arrays)
    return caught.value


def text_at(error: TileError) -> str:
    assert error.span is not None
    return error.source.splitlines()[error.span.line - 1].strip()


def test_a_kernel_with_flags_is_kept() -> None:
    assert isinstance(kernels.add().kernel, KeptKernel)


def test_levels_alone_do_not_keep_a_kernel() -> None:
    @T.prim_func
    def plain(A: T.Tensor((16, 64), "float"), B: T.Tensor((16, 64), "float")):
        with T.Kernel(1) as _:
            a = T.alloc_ub((16, 64), "float")
            T.copy(A[0, 0], a)
            T.copy(a, B[0, 0])

    assert not is_kept(plain)


def test_a_flag_in_a_macro_keeps_a_kernel() -> None:
    assert isinstance(kernels.ring().kernel, KeptKernel)


def test_flags_as_written_give_the_right_sum() -> None:
    assert np.array_equal(kernels.add()(X, Y), X + Y)


def test_the_text_has_the_flags_of_the_author_and_no_others() -> None:
    flags = re.findall(r"(?:SetFlag|WaitFlag)<AscendC::HardEvent::(\w+)>\((\w+)\)", kernels.add().get_kernel_source())
    assert flags == [("MTE2_V", "EVENT_ID0")] * 2 + [("V_MTE3", "EVENT_ID1")] * 2


@pytest.mark.slow
def test_a_missing_flag_is_a_race_at_the_line_of_what_comes_too_early() -> None:
    error = fault(kernels.add(loaded=False), X, Y)
    assert (error.message.split(":")[0], text_at(error)) == ("race", "T.tile.add(c, a, b)")


@pytest.mark.slow
def test_a_missing_flag_before_a_store_is_a_race_at_the_store() -> None:
    assert text_at(fault(kernels.add(computed=False), X, Y)) == "T.copy(c, C[row, 0])"


@pytest.mark.slow
def test_a_missing_set_is_a_deadlock_at_its_wait() -> None:
    error = fault(kernels.add(loaded=False, waits=False), X, Y)
    assert (error.message.split(":")[0], text_at(error)) == ("deadlock", 'T.wait_flag("mte2", "v", 0)')


@pytest.mark.slow
def test_a_missing_wait_leaves_a_flag_over_or_races() -> None:
    assert fault(kernels.add(waits=False), X, Y).message.split(":")[0] in ("race", "leftover_flag")


def test_too_much_ub_is_an_error_with_bytes() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def large(A: T.Tensor((512, 256), "float"), B: T.Tensor((512, 256), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((256, 256), "float")
            with T.Scope("V"):
                T.copy(A[vid * 256, 0], a)
                T.barrier_all()
                T.copy(a, B[vid * 256, 0])

    with pytest.raises(TileError, match="take 262144 bytes, and 910B2 has 196608") as caught:
        large.compile()
    assert text_at(caught.value) == 'a = T.alloc_ub((256, 256), "float")'


@pytest.mark.slow
def test_gemm_v0_between_barriers_is_a_product() -> None:
    a, b = halves(128, 256), halves(256, 128)
    assert np.allclose(kernels.gemm()(a, b), product(a, b), atol=1e-3)


@pytest.mark.slow
def test_a_product_beyond_the_end_of_its_tensors_is_cut() -> None:
    a, b = halves(70, 80), halves(80, 90)
    assert np.allclose(kernels.gemm(sizes=(70, 90, 80))(a, b), product(a, b), atol=1e-3)


def test_gemm_v0_goes_along_k_in_steps_of_128() -> None:
    depths = re.findall(r"MmadParams\(\d+, \d+, (\d+)", kernels.gemm(step=256).get_kernel_source())
    assert depths == ["128", "128"]


@pytest.mark.slow
def test_two_gemm_v0_after_one_another_set_no_flag_twice() -> None:
    a, b = halves(128, 256), halves(256, 128)
    assert np.allclose(kernels.gemm(step=256)(a, b), product(a, b), atol=1e-3)


def test_stages_of_a_pipelined_loop_are_slots_that_are_loaded_ahead() -> None:
    kernel = kernels.gemm(stages=2)
    assert {b.slots for b in kernel.compile().program.buffers if str(b.level) == "L1"} == {2}


@pytest.mark.slow
def test_a_pipelined_loop_gives_the_same_product() -> None:
    a, b = halves(128, 256), halves(256, 128)
    assert np.allclose(kernels.gemm(stages=3)(a, b), product(a, b), atol=1e-3)


@pytest.mark.slow
def test_slots_and_mma_with_a_flag_for_each_slot() -> None:
    a, b = halves(64, 256), halves(64, 256)
    assert np.allclose(kernels.ring()(a, b), np.maximum(product(a, b.T), 0), rtol=2e-3, atol=2e-3)


@pytest.mark.slow
def test_cube_and_vector_cores_meet_in_a_workspace() -> None:
    a, b = halves(64, 64), halves(64, 64)
    assert np.allclose(kernels.handed_over()(a, b, X), product(a, b) + X, atol=1e-3)


@pytest.mark.slow
def test_a_missing_flag_between_cores_is_told_at_the_load() -> None:
    error = fault(kernels.handed_over(flagged=False), halves(64, 64), halves(64, 64), X)
    assert text_at(error) in ("T.copy(workspace[vid * 32, 0], x)", "T.copy(c, workspace[0, 0])", 'T.set_cross_flag("FIX", 0)')


@pytest.mark.slow
def test_auto_sync_orders_what_has_no_flags_and_tails_are_zero() -> None:
    a = np.abs(RNG.standard_normal((20, 34))).astype(np.float32) + 1
    assert np.allclose(kernels.normalised()(a), a / a.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.slow
def test_auto_sync_orders_a_kernel_that_lacks_a_flag() -> None:
    assert np.array_equal(kernels.add(loaded=False, computed=False, auto=True)(X, Y), X + Y)


@pytest.mark.slow
def test_the_scalar_unit_is_ordered_with_the_copies_around_it() -> None:
    a = RNG.standard_normal((2, 32)).astype(np.float32)
    assert np.allclose(kernels.running_sum()(a), np.cumsum(a, 1), rtol=1e-4, atol=1e-5)


def test_auto_sync_off_without_flags_is_refused() -> None:
    with pytest.raises(TileError, match="has no flags, barriers, addresses or scopes"):

        @tile_eg.jit(out_idx=[-1], pass_configs={kernels.SYNC: False})
        @T.prim_func
        def plain(A: T.Tensor((16, 64), "float"), B: T.Tensor((16, 64), "float")):
            with T.Kernel(1) as _:
                a = T.alloc_shared((16, 64), "float")
                T.copy(A[0, 0], a)
                T.copy(a, B[0, 0])


def test_an_instruction_in_the_other_cores_scope_is_told() -> None:
    with pytest.raises(TileError, match="this statement runs on the vector cores, and this is the scope of the cube core"):

        @tile_eg.jit
        @T.prim_func
        def wrong(A: T.Tensor((16, 64), "float")):
            with T.Kernel(1) as _:
                a = T.alloc_ub((16, 64), "float")
                with T.Scope("C"):
                    T.copy(A[0, 0], a)


def test_a_copy_without_a_path_is_told_with_a_way() -> None:
    with pytest.raises(TileError, match="no path from L1 to UB") as caught:

        @tile_eg.jit
        @T.prim_func
        def wrong(A: T.Tensor((16, 64), "float16")):
            with T.Kernel(1) as _:
                a = T.alloc_ub((16, 64), "float16")
                b = T.alloc_L1((16, 64), "float16")
                T.copy(A[0, 0], b)
                T.barrier_all()
                T.copy(b, a)

    assert "GM -> UB -> GM, UB, L1" in caught.value.help


def test_a_kept_kernel_is_timed() -> None:
    planned = kernels.add().compile()
    assert isinstance(planned, PlannedKept) and planned.cost.microseconds > 0


# ---- what harms nothing -----------------------------------------------------------------------------------------------------


@T.prim_func
def one_flag_for_two_loads(X: T.Tensor((2, 64), "float"), ONE: T.Tensor((64,), "float"), Y: T.Tensor((2, 64), "float")):
    """Y = X + 1; the 1 is loaded in each trip, while the trip before may still add it."""
    with T.Kernel(1) as _:  # noqa: SIM117
        with T.Scope("V"):
            x, one, y = T.alloc_ub((2, 64), "float"), T.alloc_ub((64,), "float"), T.alloc_ub((2, 64), "float")
            for i in T.serial(2):
                T.copy(X[i, :], x[i, :])
                T.copy(ONE, one)
                T.set_flag("mte2", "v", 0)
                T.wait_flag("mte2", "v", 0)
                T.tile.add(y[i, :], x[i, :], one)
                T.set_flag("v", "mte3", 0)
                T.wait_flag("v", "mte3", 0)
                T.copy(y[i, :], Y[i, :])


@pytest.mark.slow
def test_a_flag_without_a_flag_back_and_a_constant_that_is_loaded_again_are_let_pass() -> None:
    x, one = np.arange(128, dtype=np.float32).reshape(2, 64), np.ones(64, np.float32)
    assert (tile_eg.compile(one_flag_for_two_loads, out_idx=[-1])(x, one) == x + 1).all()
