"""Copies from L0C to UB, and from UB to L1, in kept kernels: through a workspace, with flags there and back."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.ir.program import CrossSet, walk
from tile_eg.jit import CompiledKernel

RNG = np.random.default_rng(0)
SYNC = tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC


@functools.cache
def chained(trips: int = 2, halves: bool = True, dtype: str = "float", used: int = 0) -> CompiledKernel:
    """D = sum over the trips of relu(A_k @ B) @ B: the product goes to UB, and its relu back to L1."""
    rows = 16 if halves else 32

    @tile_eg.jit(out_idx=[-1], pass_configs={SYNC: True})
    def kernel() -> Any:
        @T.prim_func
        def chained(A: T.Tensor((32 * trips, 32), "float16"), B: T.Tensor((32, 32), "float16"), D: T.Tensor((32, 32), "float")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_L1((32, 32), "float16")
                b = T.alloc_L1((32, 32), "float16")
                p = T.alloc_L1((32, 32), "float16")
                c = T.alloc_L0C((32, 32), "float")
                d = T.alloc_L0C((32, 32), "float")
                x = T.alloc_ub((rows, 32), dtype)
                y = T.alloc_ub((rows, 32), "float16")
                at = vid * 16 if halves else 0
                with T.Scope("C"):
                    T.copy(B[0, 0], b)
                    for n in range(used):
                        T.set_cross_flag("FIX", n)
                for k in T.serial(trips):
                    with T.Scope("C"):
                        T.copy(A[k * 32, 0], a)
                        T.gemm_v0(a, b, c, init=True)
                    T.copy(c[at : at + rows, :], x)
                    with T.Scope("V"):
                        T.tile.relu(x, x)
                        T.copy(x, y)
                    T.copy(y, p[at : at + rows, :])
                    with T.Scope("C"):
                        T.gemm_v0(p, b, d, init=(k == 0))
                with T.Scope("C"):
                    T.copy(d, D[0, 0])
                with T.Scope("V"):
                    for n in range(used):
                        T.wait_cross_flag(n)

        return chained

    return kernel()


def operands(trips: int = 2) -> tuple[np.ndarray, np.ndarray]:
    return RNG.uniform(-1, 1, (32 * trips, 32)).astype(np.float16), RNG.uniform(-1, 1, (32, 32)).astype(np.float16)


def meaning(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    parts = (np.maximum(x.astype(np.float32) @ b.astype(np.float32), 0) for x in np.split(a, len(a) // 32))
    return sum(p.astype(np.float16).astype(np.float32) @ b.astype(np.float32) for p in parts)  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.parametrize(("trips", "halves", "dtype"), [(2, True, "float"), (3, False, "float"), (1, True, "float16")])
def test_what_one_core_has_comes_to_the_other(trips: int, halves: bool, dtype: str) -> None:
    a, b = operands(trips)
    assert np.abs(chained(trips, halves, dtype)(a, b) - meaning(a, b)).max() < 2e-2


def test_the_workspace_is_the_block_s_own() -> None:
    program = chained().compile().program
    assert program.workspace == 32 * 32 * 4 + 32 * 32 * 2
    assert [b.name for b in program.buffers if str(b.level) == "WS"] == ["x_ws", "y_ws"]


@pytest.mark.slow
def test_flags_that_the_author_uses_are_left_to_him() -> None:
    cube = chained(used=3).compile().program.cube
    assert {str(n.id) for n in walk(cube) if isinstance(n, CrossSet)} == {"n", "3", "4"}
    a, b = operands()
    assert np.abs(chained(used=3)(a, b) - meaning(a, b)).max() < 2e-2


def test_without_flags_left_the_copy_is_refused() -> None:
    with pytest.raises(TileError, match="there are no flags between cores left for this copy"):
        chained(used=10)


def test_in_a_scope_it_is_refused() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float"), B: T.Tensor((16, 16), "float")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            c = T.alloc_L0C((16, 16), "float")
            x = T.alloc_ub((16, 16), "float")
            with T.Scope("C"):
                T.copy(c, x)

    with pytest.raises(TileError, match="a copy from L0C to UB is done by both kinds of core") as caught:
        tile_eg.compile(main)
    assert caught.value.help.startswith("write it outside of T.Scope")
