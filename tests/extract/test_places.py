"""Where authors put their buffers, and in how many slots: the emitted program has them there, or the error says why not."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.jit import CompiledKernel

RNG = np.random.default_rng(0)


@functools.cache
def product(slots_a: int, slots_b: int, trips: int = 6, edge: int = 64) -> CompiledKernel:
    """C = A @ B with operands in slots of L1; C is stored from L0C."""

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        K, N = 64 * trips, edge  # noqa: N806

        @T.prim_func
        def product(A: T.Tensor((N, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((N, N), "float16")):
            with T.Kernel(1) as _:
                a = T.alloc_L1((slots_a, N, 64), "float16")
                b = T.alloc_L1((slots_b, 64, N), "float16")
                c = T.alloc_L0C((N, N), "float")
                for k in T.serial(trips):
                    T.copy(A[0, k * 64], a[k % slots_a, :, :])
                    T.copy(B[k * 64, 0], b[k % slots_b, :, :])
                    T.gemm(a[k % slots_a, :, :], b[k % slots_b, :, :], c, init=(k == 0))
                T.copy(c, C[0, 0])

        return product

    return kernel()


@functools.cache
def exponentials(slots: int, trips: int = 6) -> CompiledKernel:
    """B = exp(A), what is loaded and what is stored in so many slots of UB."""

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        rows = 32 * trips

        @T.prim_func
        def exponentials(A: T.Tensor((rows, 64), "float"), B: T.Tensor((rows, 64), "float")):
            with T.Kernel(1) as _:
                a = T.alloc_ub((slots, 32, 64), "float")
                b = T.alloc_ub((slots, 32, 64), "float")
                for k in T.serial(trips):
                    T.copy(A[k * 32, 0], a[k % slots, :, :])
                    T.tile.exp(b[k % slots, :, :], a[k % slots, :, :])
                    T.copy(b[k % slots, :, :], B[k * 32, 0])

        return exponentials

    return kernel()


@functools.cache
def stored_from(level: str) -> CompiledKernel:
    """C = A @ B, which goes to C from L0C, or by a buffer in UB."""
    in_ub = level == "UB"

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        @T.prim_func
        def stored(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float")):
            with T.Kernel(1) as _:
                a = T.alloc_L1((64, 64), "float16")
                b = T.alloc_L1((64, 64), "float16")
                c = T.alloc_L0C((64, 64), "float")
                y = T.alloc_ub((64, 64), "float")
                T.copy(A[0, 0], a)
                T.copy(B[0, 0], b)
                T.gemm(a, b, c, init=True)
                if in_ub:
                    T.copy(c, y)
                    T.copy(y, C[0, 0])
                else:
                    T.copy(c, C[0, 0])

        return stored

    return kernel()


@functools.cache
def operand_in_ub(computed: bool) -> CompiledKernel:
    """C = A @ B, or exp(A) @ B, of which the left operand is said to be in UB alone."""

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        @T.prim_func
        def from_ub(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float")):
            with T.Kernel(1) as _:
                a = T.alloc_ub((64, 64), "float16")
                b = T.alloc_L1((64, 64), "float16")
                c = T.alloc_L0C((64, 64), "float")
                T.copy(A[0, 0], a)
                if computed:
                    T.tile.exp(a, a)
                T.copy(B[0, 0], b)
                T.gemm(a, b, c, init=True)
                T.copy(c, C[0, 0])

        return from_ub

    return kernel()


def in_l1() -> CompiledKernel:
    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        @T.prim_func
        def in_l1(A: T.Tensor((64, 128), "float"), B: T.Tensor((64, 128), "float")):
            with T.Kernel(1) as _:
                a = T.alloc_L1((64, 128), "float")
                b = T.alloc_ub((64, 128), "float")
                T.copy(A[0, 0], a)
                T.tile.exp(b, a)
                T.copy(b, B[0, 0])

        return in_l1

    return kernel()


def slots(kernel: CompiledKernel, level: str) -> dict[str, int]:
    """How many slots each buffer of a memory has in the emitted program, by the source's names."""
    found = kernel.compile().program.buffers
    return {b.name.rsplit("_", 1)[0]: b.slots for b in found if str(b.level) == level}


def arrays(kernel: CompiledKernel) -> list[np.ndarray]:
    tensors = [t for t in kernel.kernel.tensors if not t.output]
    return [RNG.uniform(-1, 1, t.shape).astype(np.float16 if str(t.dtype) == "f16" else np.float32) for t in tensors]


def ops(kernel: CompiledKernel) -> str:
    return str(kernel.compile().program)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [(2, 3), (2, 2), (4, 2), (3, 5)])
def test_slots_of_l1_are_as_many_as_the_author_says(a: int, b: int) -> None:
    assert slots(product(a, b), "L1") == {"a": a, "b": b}


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_slots_of_ub_are_as_many_as_the_author_says(depth: int) -> None:
    assert slots(exponentials(depth), "UB") == {"a": depth, "b": depth}


@pytest.mark.slow
def test_a_loop_with_fewer_trips_fills_as_many_slots() -> None:
    assert slots(product(4, 4, trips=2), "L1") == {"a": 2, "b": 2}


@pytest.mark.slow
def test_the_numbers_are_right_with_slots() -> None:
    kernel = product(3, 5)
    a, b = arrays(kernel)
    assert np.abs(kernel(a, b).astype(np.float32) - a.astype(np.float32) @ b.astype(np.float32)).max() < 2e-2


def test_slots_that_do_not_fit_are_told_with_their_bytes() -> None:
    with pytest.raises(TileError) as caught:
        product(16, 16, trips=32, edge=192).compile()
    assert caught.value.message == "the tiles need 786,432 bytes of L1 at once; 910B2 has 524,032 for operands of matrix products"
    assert ("`a` is written with 16 slots: each of them holds a tile", None) in caught.value.notes
    assert caught.value.help.endswith("or give fewer slots")


@pytest.mark.slow
def test_what_is_stored_from_ub_goes_by_ub() -> None:
    text = ops(stored_from("UB"))
    assert "ub_to_gm C" in text and "fixpipe C" not in text
    assert "fixpipe C" in ops(stored_from("L0C"))


@pytest.mark.slow
def test_an_operand_that_is_computed_in_ub_comes_to_the_product_from_there() -> None:
    kernel = operand_in_ub(True)
    a, b = arrays(kernel)
    assert np.abs(kernel(a, b) - np.exp(a).astype(np.float32) @ b.astype(np.float32)).max() < 1e-1


def test_an_operand_that_is_loaded_to_ub_alone_is_told() -> None:
    with pytest.raises(TileError) as caught:
        operand_in_ub(False).compile()
    assert caught.value.message.startswith("`a` (8,192 bytes) is said to be in UB, and it is an operand of a product")
    assert "copy it to a buffer of T.alloc_L1" in caught.value.help


def test_a_buffer_that_cannot_lie_where_it_is_said_to_is_told() -> None:
    with pytest.raises(TileError) as caught:
        in_l1().compile()
    assert caught.value.message.startswith("`a` (32,768 bytes) is said to be in L1, and the vector cores compute with it")
    assert "T.alloc_shared" in caught.value.help
    assert caught.value.span is not None


@pytest.mark.slow
@pytest.mark.parametrize("depth", [32, 64])
def test_parts_are_joined_wherever_their_buffer_is_said_to_lie(depth: int) -> None:
    """C = A @ [B0, B1].T in three depths of 32, or in two of 64, of which the tensors' end cuts off the last one."""

    @tile_eg.jit(out_idx=[-1])
    def kernel() -> Any:
        f16, half = "float16", (32, 96)

        @T.prim_func
        def spliced(A: T.Tensor((64, 96), f16), B0: T.Tensor(half, f16), B1: T.Tensor(half, f16), C: T.Tensor((64, 64), "float")):
            with T.Kernel(1) as _:
                a, b = T.alloc_L1((64, depth), f16), T.alloc_L1((64, depth), f16)
                c = T.alloc_L0C((64, 64), "float")
                for k in T.serial(T.ceildiv(96, depth)):
                    T.copy(A[0, k * depth], a)
                    T.copy(B0[0, k * depth], b[0:32, :])
                    T.copy(B1[0, k * depth], b[32:64, :])
                    T.gemm_v0(a, b, c, transpose_B=True, init=(k == 0))
                T.copy(c, C[0, 0])

        return spliced

    a, b0, b1 = (RNG.standard_normal((rows, 96)).astype(np.float16) for rows in (64, 32, 32))
    want = a.astype(np.float32) @ np.concatenate([b0, b1]).astype(np.float32).T
    np.testing.assert_allclose(kernel()(a, b0, b1), want, rtol=1e-4, atol=1e-4)
