"""Kernels done in the order of their statements: what both kinds of core use, and what a tensor's end leaves of products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

pytestmark = [pytest.mark.slow(but=2), pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")]
AUTO = dict.fromkeys((tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC, tile_eg.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC), True)
TAKEN = np.array([1, 1], np.float32)


def drawn(*shape: int, low: float = -1, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(low, 1, shape).astype(dtype)


def largest_scores(workspace: bool) -> Any:
    """Scores of 40 keys, 32 a trip, whose largest ones are negative: the keys that are not there would be larger."""

    @tile_eg.jit(out_idx=[3], workspace_idx=[4], pass_configs=AUTO)
    @T.prim_func
    def main(
        Q: T.Tensor((16, 32), "float16"), K: T.Tensor((40, 32), "float16"), taken: T.Tensor((2,), "float32"),
        Y: T.Tensor((16,), "float32"), W: T.Tensor((16, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=2, is_npu=True) as _:
            q, k = T.alloc_shared((16, 32), "float16"), T.alloc_shared((32, 32), "float16")
            s, x = T.alloc_fragment((16, 32), "float32"), T.alloc_shared((16, 32), "float32")
            m, new = T.alloc_shared((16,), "float32"), T.alloc_shared((16,), "float32")
            T.copy(Q, q)
            T.fill(m, -1e30)
            for i in T.serial(2):
                if taken[i] > 0:
                    T.copy(K[i * 32, 0], k)
                    T.gemm_v0(q, k, s, transpose_B=True, init=True)
                    T.copy(s, W)
                    T.copy(W if workspace else s, x)
                    T.reduce_max(x, new, dim=1)
                    T.tile.max(m, m, new)
            T.copy(m, Y)

    return main


@pytest.mark.slow
@pytest.mark.parametrize("workspace", [False, True])
def test_keys_that_are_not_there_take_no_part_in_the_largest_score(workspace: bool) -> None:
    q, k = drawn(16, 32, low=0.1), -drawn(40, 32, low=0.1)
    wanted = (q.astype(np.float32) @ k.astype(np.float32).T).max(1)
    np.testing.assert_allclose(largest_scores(workspace)(q, k, TAKEN), wanted, rtol=1e-3)


def test_a_product_ends_where_its_computed_operand_does() -> None:
    @tile_eg.jit(out_idx=[-1], pass_configs=AUTO)
    @T.prim_func
    def main(
        X: T.Tensor((16, 24), "float16"), V: T.Tensor((32, 16), "float16"), taken: T.Tensor((2,), "float32"),
        Y: T.Tensor((16, 16), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=2, is_npu=True) as _:
            x, v = T.alloc_shared((16, 32), "float16"), T.alloc_shared((32, 16), "float16")
            c = T.alloc_fragment((16, 16), "float32")
            if taken[0] > 0:
                T.copy(X, x)
                for i, j in T.Parallel(16, 32):
                    x[i, j] = T.exp(x[i, j])
                T.copy(V, v)
                T.gemm_v0(x, v, c, init=True)
                T.copy(c, Y)

    x, v = drawn(16, 24), drawn(32, 16)
    wanted = np.exp(x.astype(np.float32)) @ v[:24].astype(np.float32)
    np.testing.assert_allclose(main(x, v, TAKEN), wanted, rtol=1e-2, atol=1e-2)


def test_what_a_trip_loads_for_the_next_one_up_to_a_tensors_end_is_an_error_with_a_way_out() -> None:
    def prefetching(padding: dict[str, float]) -> Any:
        @tile_eg.jit(out_idx=[-1], pass_configs=AUTO)
        @T.prim_func
        def main(A: T.Tensor((8, 40), "float32"), taken: T.Tensor((2,), "float32"), Y: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=2, is_npu=True) as _:
                x, y = T.alloc_shared((8, 32), "float32"), T.alloc_shared((8, 32), "float32")
                s, new = T.alloc_shared((8,), "float32"), T.alloc_shared((8,), "float32")
                T.fill(s, 0.0)
                T.copy(A[0, 0], x)
                for i in T.serial(2):
                    if taken[i] > 0:
                        T.tile.mul(y, x, 2.0)
                        T.reduce_sum(y, new, dim=1)
                        T.tile.add(s, s, new)
                        T.copy(A[0, 32], x, **padding)
                T.copy(s, Y)

        return main

    with pytest.raises(TileError, match="how much of x exists differs from trip to trip"):
        prefetching({})
    a = drawn(8, 40, dtype=np.float32)
    np.testing.assert_allclose(prefetching({"pad_value": 0.0})(a, TAKEN), 2 * a.sum(1), rtol=1e-4)


def test_attention_over_tiles_that_a_mask_names_computes_with_its_products_where_they_are() -> None:
    S, D, BM = 64, 32, 32

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def main(
        Q: T.Tensor((S, D), "float16"), K: T.Tensor((S, D), "float16"), V: T.Tensor((S, D), "float16"),
        mask: T.Tensor((S // BM, S // BM), "int32"), Y: T.Tensor((S, D), "float16"),
    ):  # fmt: skip
        with T.Kernel(S // BM, threads=128) as bx:
            q, k, v = (T.alloc_shared((BM, D), "float16") for _ in range(3))
            s, p = T.alloc_fragment((BM, BM), "float32"), T.alloc_fragment((BM, BM), "float16")
            acc = T.alloc_fragment((BM, D), "float32")
            total, new = T.alloc_fragment((BM,), "float32"), T.alloc_fragment((BM,), "float32")
            T.copy(Q[bx * BM, 0], q)
            T.clear(acc)
            T.clear(total)
            for t in T.Pipelined(S // BM, num_stages=1):
                if mask[bx, t] != 0:
                    T.copy(K[t * BM, 0], k)
                    T.clear(s)
                    T.gemm(q, k, s, transpose_B=True)
                    for i, j in T.Parallel(BM, BM):
                        s[i, j] = T.exp(s[i, j] * 0.125)
                    T.reduce_sum(s, new, dim=1)
                    T.copy(s, p)
                    T.copy(V[t * BM, 0], v)
                    for i in T.Parallel(BM):
                        total[i] += new[i]
                    for i, j in T.Parallel(BM, D):
                        acc[i, j] *= 1.0
                    T.gemm(p, v, acc)
            for i, j in T.Parallel(BM, D):
                acc[i, j] /= total[i]
            T.copy(acc, Y[bx * BM, 0])

    q, k, v = (drawn(S + n, D)[:S] for n in range(3))
    mask = np.array([[1, 0], [1, 1]], np.int32)
    e = np.exp(q.astype(np.float32) @ k.astype(np.float32).T * 0.125) * np.kron(mask, np.ones((BM, BM)))
    np.testing.assert_allclose(main(q, k, v, mask), e @ v.astype(np.float32) / e.sum(1, keepdims=True), rtol=1e-2, atol=1e-2)


def test_tiles_of_the_two_vector_cores_do_not_go_to_one_place_in_l1() -> None:
    with pytest.raises(TileError, match="both vector cores copy a tile to the same place in L1") as told:
        @tile_eg.jit(out_idx=[-1], pass_configs={tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
        @T.prim_func
        def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 16), "float16"), Y: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, is_npu=True) as (_, vid):
                a, x = T.alloc_ub((16, 32), "float16"), T.alloc_L1((16, 32), "float16")
                b, c = T.alloc_L1((32, 16), "float16"), T.alloc_L0C((16, 16), "float32")
                T.copy(A[vid * 16, 0], a)
                T.barrier_all()
                T.copy(a, x)
                T.copy(B, b)
                T.gemm_v0(x, b, c, init=True)
                T.copy(c, Y)
    assert "T.copy(x, a[vid * n : vid * n + n, :])" in str(told.value)


def test_what_is_loaded_beside_a_part_of_a_tile_in_l1_leaves_that_part_as_it_is() -> None:
    @tile_eg.jit(out_idx=[-1], pass_configs=AUTO)
    @T.prim_func
    def main(
        A: T.Tensor((20, 32), "float16"), Z: T.Tensor((20, 32), "float16"), B: T.Tensor((64, 16), "float16"),
        taken: T.Tensor((2,), "float32"), Y: T.Tensor((20, 16), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=2, is_npu=True) as cid:
            a, b, c = T.alloc_L1((16, 64), "float16"), T.alloc_L1((64, 16), "float16"), T.alloc_L0C((16, 16), "float32")
            if taken[0] > 0:
                T.copy(Z[cid * 16, 0], a[:, 32:64])
                T.copy(A[cid * 16, 0], a[:, 0:32])
                T.copy(B, b)
                T.gemm_v0(a, b, c, init=True)
                T.copy(c, Y[cid * 16, 0])

    a, z, b = drawn(20, 32), drawn(20, 33)[:, :32].copy(), drawn(64, 16)
    wanted = np.concatenate([a, z], 1).astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(main(a, z, b, TAKEN), wanted, rtol=1e-2, atol=1e-2)


def test_planes_of_a_tensor_are_rows_of_a_tile_in_l1() -> None:
    @tile_eg.jit(out_idx=[-1], pass_configs=AUTO)
    @T.prim_func
    def main(
        Q: T.Tensor((4, 8, 32), "float16"), K: T.Tensor((16, 32), "float16"), taken: T.Tensor((2,), "float32"),
        Y: T.Tensor((4, 8, 16), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=2, is_npu=True) as cid:
            q, k, s = T.alloc_L1((16, 32), "float16"), T.alloc_L1((16, 32), "float16"), T.alloc_L0C((16, 16), "float32")
            if taken[0] > 0:
                T.copy(Q[cid * 2 : cid * 2 + 2, :, :], q)
                T.copy(K, k)
                T.gemm_v0(q, k, s, transpose_B=True, init=True)
                T.copy(s, Y[cid * 2 : cid * 2 + 2, :, :])

    q, k = drawn(4, 8, 32), drawn(16, 32)
    np.testing.assert_allclose(main(q, k, TAKEN), q.astype(np.float32) @ k.astype(np.float32).T, rtol=1e-2, atol=1e-2)
