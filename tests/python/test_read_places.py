"""Indices that are read in a kernel that is done in order: each has to lie in its own dimension, where it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.python.written import prim_func
from tile_eg.errors import TileError

N = 16
W = np.arange(8 * 10, dtype=np.float32).reshape(8, 10)
P = np.arange(N, dtype=np.int32) % 8
INSIDE = np.arange(N, dtype=np.int32) % 10
BEYOND = np.where(np.arange(N) == 5, 12, INSIDE).astype(np.int32)
TEXT = """@T.prim_func
def f(W: T.Tensor((8, 10), "float32"), P: T.Tensor((16,), "int32"), Q: T.Tensor((16,), "int32"), O: T.Tensor((16,), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        o, p, q = T.alloc_ub((16,), "float32"), T.alloc_ub((16,), "int32"), T.alloc_ub((16,), "int32")
        T.printf("")
        T.copy(P, p)
        T.copy(Q, q)
        T.tile.fill(o, 0.0)
        for j in LOOP(16):
            BODY
        T.copy(o, O)
"""
READ = {"Parallel": "o[j] = W[p[j], q[j]]", "serial": "o[j] = W[P[j], Q[j]]"}
CHOSEN = {
    "a choice": ("serial", "o[j] = T.if_then_else(Q[j] < 10, W[P[j], Q[j]], 0.0)"),
    "the other arm": ("serial", "o[j] = T.if_then_else(Q[j] >= 10, 0.0, W[P[j], Q[j]])"),
    "a choice of elements": ("Parallel", "o[j] = T.if_then_else(q[j] < 10, W[p[j], q[j]], 0.0)"),
    "a branch": ("serial", "if q[j] < 10: o[j] = W[p[j], q[j]]"),
    "a branch of elements": ("Parallel", "if q[j] < 10: o[j] = W[p[j], q[j]]"),
}


def ran(loop: str, body: str, q: np.ndarray) -> np.ndarray:
    kernel = prim_func(TEXT.replace("LOOP", f"T.{loop}").replace("BODY", body))
    auto = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
    return tile_eg.jit(out_idx=[-1], pass_configs=auto, effort="none")(kernel)(W, P, q)


@pytest.mark.slow
@pytest.mark.parametrize("loop", READ)
def test_a_column_beyond_the_last_one_is_not_the_next_row(loop: str) -> None:
    with pytest.raises(TileError, match="an index of W that is read is 12: dimension 1 has 10 elements"):
        ran(loop, READ[loop], BEYOND)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("loop", READ)
def test_elements_inside_are_read(loop: str) -> None:
    np.testing.assert_array_equal(ran(loop, READ[loop], INSIDE), W[P, INSIDE])


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("how", CHOSEN)
def test_what_is_not_chosen_may_lie_anywhere(how: str) -> None:
    np.testing.assert_array_equal(ran(*CHOSEN[how], BEYOND), np.where(BEYOND < 10, W[P, BEYOND % 10], 0))


@pytest.mark.slow
def test_a_row_of_another_plane_is_not_copied() -> None:
    kernel = prim_func("""@T.prim_func
def f(X: T.Tensor((2, 4, 16), "float32"), R: T.Tensor((8,), "int32"), O: T.Tensor((16,), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        row = T.alloc_ub((16,), "float32")
        T.printf("")
        T.copy(X[0, R[3], 0], row)
        T.copy(row, O)
""")
    x = np.arange(128, dtype=np.float32).reshape(2, 4, 16)
    made = tile_eg.jit(out_idx=[-1], pass_configs={tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}, effort="none")(kernel)
    np.testing.assert_array_equal(made(x, np.full(8, 3, np.int32)), x[0, 3])
    with pytest.raises(TileError, match="an index of X that is read is 5: dimension 1 has 4 elements"):
        made(x, np.full(8, 5, np.int32))


@pytest.mark.slow
def test_the_core_that_reads_an_index_asks_it() -> None:
    kernel = prim_func("""@T.prim_func
def f(X: T.Tensor((2, 8, 16), "float16"), Q: T.Tensor((16,), "int32"), S: T.Tensor((16, 16), "float16"),
      O: T.Tensor((16, 16), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        q, rows = T.alloc_ub((16,), "int32"), T.alloc_ub((16, 16), "float16")
        a, c = T.alloc_L1((16, 16), "float16"), T.alloc_L0C((16, 16), "float32")
        T.printf("")
        T.copy(Q, q)
        T.tile.fill(rows, 0.0)
        for i in T.serial(16):
            at = q[i]
            if at != -1:
                T.copy(X[1, at, :], rows[i, :])
        T.copy(rows, S)
        T.copy(S, a)
        T.gemm_v0(a, a, c, transpose_B=True, init=True)
        T.copy(c, O)
""")
    x = (np.arange(2 * 8 * 16) % 7).reshape(2, 8, 16).astype(np.float16)
    at = np.arange(16, dtype=np.int32) % 9 - 1
    auto = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
    jitted = tile_eg.jit(out_idx=[-1], pass_configs=auto, effort="none")(kernel)
    rows = np.where(at[:, None] < 0, 0, x[1, at]).astype(np.float32)
    np.testing.assert_array_equal(jitted(x, at, np.zeros((16, 16), np.float16)), rows @ rows.T)
    with pytest.raises(TileError, match="an index of X that is read is 8: dimension 1 has 8 elements"):
        jitted(x, np.full(16, 8, np.int32), np.zeros((16, 16), np.float16))


@pytest.mark.slow
def test_in_order_a_mask_and_the_end_of_the_indices_leave_rows_out() -> None:
    @tile_eg.jit(out_idx=[-1])
    def make(rows: int = 13, width: int = 24) -> Any:
        @T.prim_func
        def gather(
            X: T.Tensor((8, width), "float32"), at: T.Tensor((rows,), "int32"), there: T.Tensor((rows,), "int32"),
            n: T.Tensor((1,), "int32"), Y: T.Tensor((rows, width), "float32"),
        ):  # fmt: skip
            with T.Kernel(T.ceildiv(rows, 8)) as b:
                y = T.alloc_shared((8, width), "float32")
                T.clear(y)
                if n[0] > 0:
                    for i, j in T.Parallel(8, width):
                        y[i, j] = T.if_then_else(there[b * 8 + i] > 0, X[at[b * 8 + i], j], 1.0)
                T.copy(y, Y[b * 8, 0])

        return gather

    x, there = np.arange(8 * 24, dtype=np.float32).reshape(8, 24), np.arange(13, dtype=np.int32) % 3
    at = np.where(there > 0, np.arange(13) % 8, -9).astype(np.int32)
    found = make()(x, at, there, np.ones(1, np.int32))
    assert np.array_equal(found, np.where(there[:, None] > 0, x[at % 8], 1))
