"""Kernels whose cube core stands before the vector cores that it waits for: two streams, where both switches ask for them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

COMBINE, SYNC = (tile_eg.PassConfigKey[f"TL_ASCEND_AUTO_CV_{name}"] for name in ("COMBINE", "SYNC"))
STEPS, ROWS, D = 3, 32, 64


@T.macro
def scores(k: Any, q: Any, c: Any, W1: Any, W2: Any):
    T.copy(W1[0, 0], k)
    T.gemm_v0(q, k, c, transpose_B=True, init=True)
    T.copy(c, W2[0, 0])


@T.macro
def rows_and_sum(i: Any, vid: Any, ids: Any, row: Any, s: Any, acc: Any, KV: Any, ids_of: Any, W1: Any, W2: Any):
    T.copy(ids_of[i * ROWS], ids)
    for n in range(ROWS // 2):
        T.copy(KV[ids[n + vid * (ROWS // 2)], :], row)
        T.copy(row, W1[n + vid * (ROWS // 2), :])
    T.copy(W2[vid * (ROWS // 2), 0], s)
    T.tile.add(acc, acc, s)


@functools.cache
def gathered(one_loop: bool = False, combine: bool = True, backwards: bool = False) -> Any:
    """The sum over steps of Q @ KV[rows of the step].T, where the cube core loads what is stored further down."""

    @tile_eg.jit(out_idx=[3], workspace_idx=[4, 5], pass_configs={SYNC: True, **({COMBINE: True} if combine else {})})
    def make() -> Any:
        @T.prim_func
        def gathered(
            Q: T.Tensor((ROWS, D), "float16"), KV: T.Tensor((100, D), "float16"), ids_of: T.Tensor((STEPS * ROWS,), "int32"),
            C: T.Tensor((ROWS, ROWS), "float"),
            workspace_1: T.Tensor((ROWS, D), "float16"), workspace_2: T.Tensor((ROWS, ROWS), "float"),
        ):  # fmt: skip
            with T.Kernel(1, is_npu=True) as (_cid, vid):
                q, k, c = T.alloc_L1((ROWS, D), "float16"), T.alloc_L1((ROWS, D), "float16"), T.alloc_L0C((ROWS, ROWS), "float")
                ids, row = T.alloc_ub((ROWS,), "int32"), T.alloc_ub((D,), "float16")
                s, acc = T.alloc_ub((ROWS // 2, ROWS), "float"), T.alloc_ub((ROWS // 2, ROWS), "float")
                T.copy(Q[0, 0], q)
                T.tile.fill(acc, 0.0)
                if one_loop:
                    for i in T.serial(STEPS):
                        scores(k, q, c, workspace_1, workspace_2)
                        rows_and_sum(i, vid, ids, row, s, acc, KV, ids_of, workspace_1, workspace_2)
                else:
                    for _ in T.serial(STEPS):
                        scores(k, q, c, workspace_1, workspace_2)
                    for i in T.serial(STEPS):
                        if backwards:
                            T.copy(workspace_2[vid * (ROWS // 2), 0], acc)
                        rows_and_sum(i, vid, ids, row, s, acc, KV, ids_of, workspace_1, workspace_2)
                T.copy(acc, C[vid * (ROWS // 2), 0])

        return gathered

    return make()


@functools.cache
def arrays() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    q, kv = (rng.uniform(-1, 1, (n, D)).astype(np.float16) for n in (ROWS, 100))
    return q, kv, rng.integers(0, 100, STEPS * ROWS).astype(np.int32)


def expected() -> np.ndarray:
    q, kv, ids = arrays()
    return q.astype(np.float32) @ kv[ids].astype(np.float32).reshape(STEPS, ROWS, D).sum(0).T


@pytest.mark.slow
@pytest.mark.parametrize("one_loop", [False, True])
def test_each_core_does_its_own_statements_in_order(one_loop: bool) -> None:
    np.testing.assert_allclose(gathered(one_loop)(*arrays()), expected(), rtol=1e-3, atol=1e-2)


def test_a_note_tells_that_they_are_two_streams() -> None:
    assert "two streams" in gathered().compile().notes[0].text


def test_there_is_a_flag_for_each_tensor_that_is_handed_over() -> None:
    text = gathered().get_kernel_source()
    assert text.count("CrossCoreSetFlag") == text.count("CrossCoreWaitFlag") == 2


@functools.cache
def doubled_and_squared() -> Any:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float")):
        with T.Kernel(1, is_npu=True) as (_cid, vid):
            a, c, x = T.alloc_L1((64, 64), "float16"), T.alloc_L0C((64, 64), "float"), T.alloc_ub((32, 64), "float16")
            T.barrier_all()
            T.copy(W[0, 0], a)
            T.gemm_v0(a, a, c, init=True)
            T.copy(c, C[0, 0])
            T.copy(A[vid * 32, 0], x)
            T.tile.add(x, x, x)
            T.copy(x, W[vid * 32, 0])

    switches = {COMBINE: True, SYNC: True, tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
    return tile_eg.compile(main, out_idx=[2], workspace_idx=[1], pass_configs=switches)


@pytest.mark.slow
def test_a_kernel_that_is_kept_is_read_so_too() -> None:
    a = np.random.default_rng(0).uniform(-1, 1, (64, 64)).astype(np.float16)
    doubled = 2 * a.astype(np.float32)
    np.testing.assert_allclose(doubled_and_squared()(a), doubled @ doubled, rtol=1e-3, atol=1e-2)
    assert "two streams" in doubled_and_squared().compile().notes[0].text


@functools.cache
def one_way() -> Any:
    @T.prim_func
    def main(A: T.Tensor((5 * 64, 64), "float16"), C: T.Tensor((64, 64), "float"), workspace: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, is_npu=True) as (_cid, vid):
            a, c, x = T.alloc_L1((64, 64), "float16"), T.alloc_L0C((64, 64), "float"), T.alloc_ub((32, 64), "float16")
            for k in T.serial(5):
                T.copy(workspace[0, 0], a)
                T.gemm_v0(a, a, c, init=(k == 0))
            T.copy(c, C[0, 0])
            for i in T.serial(5):
                T.copy(A[i * 64 + vid * 32, 0], x)
                T.tile.add(x, x, x)
                T.copy(x, workspace[vid * 32, 0])

    return tile_eg.compile(main, out_idx=[1], workspace_idx=[2], pass_configs={COMBINE: True, SYNC: True})


@pytest.mark.slow
def test_a_store_waits_for_the_load_of_the_trip_before() -> None:
    a = np.random.default_rng(1).uniform(-1, 1, (5 * 64, 64)).astype(np.float16)
    doubled = 2 * a.astype(np.float32).reshape(5, 64, 64)
    np.testing.assert_allclose(one_way()(a), (doubled @ doubled).sum(0), rtol=1e-3, atol=5e-2)
    assert one_way().get_kernel_source().count("CrossCoreSetFlag") == 3  # one handed over, one free at first, one free again


def test_without_the_switch_the_order_of_the_text_is_meant() -> None:
    with pytest.raises(TileError, match="`workspace_1` is read before") as told:
        gathered(combine=False)
    read, written = told.value.span, told.value.notes[-1]
    assert read.line < written[1].line and "`workspace_1` is first written here" in written[0]


def test_cores_that_would_wait_for_each_other_are_told() -> None:
    with pytest.raises(TileError, match="do not take turns at `workspace_2`|wait for each other"):
        gathered(backwards=True)
