"""Kernels on whole tiles whose cube core stands before the vector cores that it waits for: put in order, they are searched."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel

SWITCHES = {tile_eg.PassConfigKey[f"TL_ASCEND_AUTO_CV_{name}"]: True for name in ("COMBINE", "SYNC")}
STEPS, N = 3, 64


@functools.cache
def doubled(loops: int = 1, stages: int = 0, backwards: bool = False, switches: bool = True) -> Any:
    """The sum over steps of Q @ (2 K): the vector cores double what the cube core multiplies, further down in the text."""

    @tile_eg.jit(out_idx=[2], pass_configs=SWITCHES if switches else None, effort="none")
    def make() -> Any:
        @T.prim_func
        def doubled(Q: T.Tensor((N, N), "float16"), K: T.Tensor((STEPS * N, N), "float16"), C: T.Tensor((N, N), "float")):
            with T.Kernel(1, threads=2, is_npu=True) as _:
                q, k = T.alloc_shared((N, N), "float16"), T.alloc_shared((N, N), "float16")
                c, x = T.alloc_fragment((N, N), "float"), T.alloc_shared((N, N), "float16")
                y, total = T.alloc_shared((N, N), "float"), T.alloc_shared((N, N), "float")
                T.copy(Q, q)
                T.tile.fill(total, 0.0)
                if loops == 1:
                    for i in T.Pipelined(STEPS, num_stages=stages):
                        T.gemm_v0(q, k, c, init=True)
                        T.copy(c, y)
                        if backwards:
                            T.tile.add(total, total, y)
                        T.copy(K[i * N, 0], x)
                        T.tile.add(x, x, x)
                        T.copy(x, k)
                        if not backwards:
                            T.tile.add(total, total, y)
                else:
                    for _ in T.serial(STEPS):
                        T.gemm_v0(q, k, c, init=True)
                        T.copy(c, y)
                    for i in T.serial(STEPS):
                        T.copy(K[i * N, 0], x)
                        T.tile.add(x, x, x)
                        T.copy(x, k)
                        T.tile.add(total, total, y)
                T.copy(total, C)

        return doubled

    return make()


@pytest.mark.slow
@pytest.mark.parametrize(("loops", "stages"), [(1, 0), (1, 2), (2, 0)])
def test_what_is_read_first_is_written_first(loops: int, stages: int) -> None:
    rng = np.random.default_rng(loops)
    q, k = (rng.uniform(-1, 1, (n, N)).astype(np.float16) for n in (N, STEPS * N))
    expected = q.astype(np.float32) @ (2 * k.astype(np.float32).reshape(STEPS, N, N).sum(0))
    np.testing.assert_allclose(doubled(loops, stages)(q, k), expected, rtol=1e-3, atol=2e-2)


def test_it_is_searched() -> None:
    assert not isinstance(doubled().kernel, KeptKernel)
    assert "two streams" in doubled().kernel.notes[0].text


def test_without_the_switches_it_is_a_mistake() -> None:
    with pytest.raises(TileError, match="`k` is read before it is written(.|\n)*`k` is first written here"):
        doubled(switches=False).compile()


def test_streams_that_wait_for_each_other_have_no_order() -> None:
    with pytest.raises(TileError, match="`k` is read before it is written"):
        doubled(backwards=True).compile()
