"""Flags between cores of one kind: both vector cores of a block (mode 1), and the cores of all blocks (mode 0)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.ir.program.parser import parse_program
from tile_eg.jit import CompiledKernel

RNG = np.random.default_rng(0)
SYNC = tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC


@functools.cache
def exchanged(mode: int = 1, sets: str = "both", waits: bool = True, blocks: int = 2) -> CompiledKernel:
    """Each vector core stores its rows, and takes those of the other one of its block (mode 1), or of the next block (mode 0)."""

    @tile_eg.jit(out_idx=[-1], pass_configs={SYNC: True})
    def kernel() -> Any:
        @T.prim_func
        def exchanged(A: T.Tensor((blocks * 16, 64), "float"), workspace: T.Tensor((blocks * 16, 64), "float"),
                      B: T.Tensor((blocks * 16, 64), "float")):  # fmt: skip
            with T.Kernel(blocks, is_npu=True) as (cid, vid):
                x = T.alloc_ub((8, 64), "float")
                own = cid * 16 + vid * 8
                other = cid * 16 + (1 - vid) * 8 if mode == 1 else (cid + 1) % blocks * 16 + vid * 8
                with T.Scope("V"):
                    T.copy(A[own, 0], x)
                    T.copy(x, workspace[own, 0])
                    if sets == "both" or vid == 0:
                        T.set_cross_flag("MTE3", 3, mode)
                    if waits:
                        T.wait_cross_flag(3)
                    T.barrier_all()
                    T.copy(workspace[other, 0], x)
                    T.copy(x, B[own, 0])
                    if not waits:
                        T.wait_cross_flag(3)

        return exchanged

    return kernel()


@functools.cache
def products_of_all(flagged: bool = True) -> CompiledKernel:
    """Each cube core stores a tile of A @ B, and multiplies the next block's by B."""

    @tile_eg.jit(out_idx=[-1], pass_configs={SYNC: True})
    def kernel() -> Any:
        @T.prim_func
        def products(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 32), "float16"), workspace: T.Tensor((64, 32), "float16"),
                     C: T.Tensor((64, 32), "float")):  # fmt: skip
            with T.Kernel(2, is_npu=True) as (cid, vid):
                a = T.alloc_L1((32, 32), "float16")
                b = T.alloc_L1((32, 32), "float16")
                c = T.alloc_L0C((32, 32), "float")
                with T.Scope("C"):
                    T.copy(A[cid * 32, 0], a)
                    T.copy(B[0, 0], b)
                    T.gemm_v0(a, b, c, init=True)
                    T.copy(c, workspace[cid * 32, 0])
                    if flagged:
                        T.set_cross_flag("FIX", 0, 0)
                        T.wait_cross_flag(0)
                    T.copy(workspace[(cid + 1) % 2 * 32, 0], a)
                    T.gemm_v0(a, b, c, init=True)
                    T.copy(c, C[cid * 32, 0])

        return products

    return kernel()


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel takes: A, and a workspace."""
    return RNG.standard_normal((n, 64)).astype(np.float32), np.zeros((n, 64), np.float32)


def operands() -> tuple[np.ndarray, ...]:
    a, b = (RNG.uniform(-1, 1, shape).astype(np.float16) for shape in ((64, 32), (32, 32)))
    return a, b, np.zeros((64, 32), np.float16)


def fault(kernel: CompiledKernel, *given: np.ndarray) -> str:
    with pytest.raises(TileError) as caught:
        kernel(*given)
    return caught.value.message


@pytest.mark.slow
def test_the_vector_cores_of_a_block_hand_to_one_another() -> None:
    a, workspace = rows(32)
    assert np.array_equal(exchanged()(a, workspace), a.reshape(2, 2, 8, 64)[:, ::-1].reshape(32, 64))


@pytest.mark.slow
def test_vector_cores_of_all_blocks_hand_to_one_another() -> None:
    a, workspace = rows(48)
    assert np.array_equal(exchanged(0, blocks=3)(a, workspace), np.roll(a, -16, axis=0))


@pytest.mark.slow
def test_cube_cores_of_all_blocks_hand_to_one_another() -> None:
    a, b, workspace = operands()
    first = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    second = first.astype(np.float32) @ b.astype(np.float32)
    assert np.abs(products_of_all()(a, b, workspace) - np.roll(second, -32, axis=0)).max() < 1e-2


@pytest.mark.slow
def test_without_a_wait_they_race() -> None:
    assert "race" in fault(exchanged(waits=False), *rows(32))


@pytest.mark.slow
def test_blocks_without_a_flag_race() -> None:
    assert "race" in fault(products_of_all(False), *operands())


@pytest.mark.slow
def test_a_core_that_does_not_set_holds_the_others_for_ever() -> None:
    assert fault(exchanged(sets="one"), *rows(32)).startswith("deadlock")


@pytest.mark.slow
def test_all_blocks_have_to_run_at_a_time() -> None:
    blocks = 64
    assert "block" in fault(exchanged(0, blocks=blocks), *rows(16 * blocks))


def test_a_flag_among_vector_cores_takes_a_mixed_kernel() -> None:
    assert exchanged().compile().program.kernel_type == "MIX_AIC_1_2"
    assert "CrossCoreSetFlag<1, PIPE_MTE3>(3)" in str(exchanged().compile().source)


def test_the_program_is_read_back_with_its_modes() -> None:
    program = exchanged(0).compile().program
    assert "cross_set MTE3 3 mode 0" in str(program)
    assert parse_program(str(program), "k.program") == program


def test_a_handover_takes_the_latency_between_cores() -> None:
    flagged = exchanged().compile()
    assert flagged.timeline.block_cycles > flagged.chip.sync.cross_latency


@pytest.mark.parametrize(
    ("core", "mode", "message"), [("C", 1, "mode 1 is between the vector cores"), ("V", 3, "mode 0, 1 or 2")]
)
def test_a_mode_that_there_is_not_is_refused(core: str, mode: int, message: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float"), B: T.Tensor((16, 64), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, 64), "float")
            with T.Scope("V"):
                T.copy(A[0, 0], x)
            with T.Scope(core):
                T.set_cross_flag("FIX" if core == "C" else "MTE3", 0, mode)

    with pytest.raises(TileError, match=message):
        tile_eg.compile(main, out_idx=[-1])


def test_a_flag_has_one_mode() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float"), B: T.Tensor((16, 64), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, 64), "float")
            with T.Scope("V"):
                T.copy(A[0, 0], x)
                T.set_cross_flag("MTE2", 4, 0)
                T.wait_cross_flag(4)
                T.set_cross_flag("MTE2", 4, 1)
                T.wait_cross_flag(4)
                T.copy(x, B[0, 0])

    with pytest.raises(TileError, match="flag 4 is set in mode 1 here, and in mode 0 before"):
        tile_eg.compile(main, out_idx=[-1])
