"""Kernels in TileLang's own spelling, imports apart: what people have is what is taken."""

from __future__ import annotations

import pytest

import tile_eg as tilelang
import tile_eg.language as T
from tile_eg.ir.index import ZERO, less, var
from tile_eg.ir.kernel import Assign, Binary, For, MatMul, Number, Region, Select

PASS_CONFIGS = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
}


@tilelang.jit(out_idx=[-1], target="npuir", pass_configs=PASS_CONFIGS)
def matmul(M, N, K, block_M, block_N, block_K, dtype="float16", accum_dtype="float"):
    n_num = T.ceildiv(N, block_N)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M) * n_num, is_npu=True) as (cid, _):
            by = cid // n_num
            bx = cid % n_num
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, initC=(k == 0))
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@pytest.fixture(scope="module")
def kernel():
    return matmul(256, 512, 128, 64, 128, 32).kernel


def test_the_tensors_have_their_names_types_and_shapes(kernel) -> None:
    assert [(t.name, str(t.dtype), t.shape) for t in kernel.tensors] == [
        ("A", "f16", (256, 128)),
        ("B", "f16", (128, 512)),
        ("C", "f16", (256, 512)),
    ]


def test_the_tensors_that_are_written_are_the_outputs(kernel) -> None:
    assert [t.name for t in kernel.tensors if t.output] == ["C"]


def test_one_extent_with_two_names_is_one_dimension(kernel) -> None:
    assert kernel.grid == (("cid", 16),)


def test_buffers_keep_their_names_and_scopes(kernel) -> None:
    assert [(a.name, a.scope) for a in kernel.body[:3]] == [
        ("A_shared", "shared"),
        ("B_shared", "shared"),
        ("C_local", "fragment"),
    ]


def test_a_pipelined_loop_keeps_the_wish_for_stages(kernel) -> None:
    loop = kernel.body[3]
    assert isinstance(loop, For)
    assert (loop.var, loop.start, loop.extent, loop.kind, loop.stages) == ("k", 0, 4, "pipelined", 2)


def test_a_copy_from_a_start_point_takes_the_buffers_extent(kernel) -> None:
    row = var("cid") // 4 * 64
    source = Region("A", (row, var("k") * 32), (64, 32))
    assert kernel.body[3].body[0] == Assign(Region("A_shared", (ZERO, ZERO), (64, 32)), source)


def test_an_init_at_the_first_step_selects_zero(kernel) -> None:
    c = Region("C_local", (ZERO, ZERO), (64, 128))
    a, b = Region("A_shared", (ZERO, ZERO), (64, 32)), Region("B_shared", (ZERO, ZERO), (32, 128))
    first = less(var("k"), 1)
    assert kernel.body[3].body[2] == Assign(c, Binary("add", Select(first, Number(0.0), c), MatMul(a, b)))


def test_every_node_has_a_place_in_the_users_file(kernel) -> None:
    from tile_eg.frontend.python.values import nodes

    assert {n.span.file for n in nodes((kernel.tensors, kernel.body)) if n.span is not None} == {__file__}


def test_a_grid_of_two_dimensions_keeps_both() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(2, 4, threads=128) as (bx, by):
            T.fill(A[bx * 32, by * 16], 0.0)

    assert tilelang.jit(main).kernel.grid == (("bx", 2), ("by", 4))


def test_the_vector_half_is_a_dimension_where_there_is_no_product() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            a = T.alloc_shared((16, 64), "float32")
            T.copy(A[cid * 32 + vid * 16, 0], a)
            T.tile.exp(a, a)
            T.copy(a, B[cid * 32 + vid * 16, 0])

    assert tilelang.jit(main).kernel.grid == (("cid", 2), ("vid", 2))


def test_an_unused_vector_half_is_no_dimension() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            T.fill(A[cid * 32 : cid * 32 + 32, :], 1.0)

    assert tilelang.jit(main).kernel.grid == (("cid", 2),)


def test_annotations_that_are_strings_see_the_sizes_of_the_factory() -> None:
    """As under `from __future__ import annotations`, which this file has."""

    @tilelang.jit
    def scale(M, N):
        @T.prim_func
        def main(A: T.Tensor((M, N), "float32")):
            with T.Kernel(1):
                T.fill(A[0:M, 0:N], 1.0)

        return main

    assert scale(3, 5).kernel.tensors[0].shape == (3, 5)


def test_the_loop_over_rows_of_flash_attention_is_taken() -> None:
    @T.prim_func
    def main(S: T.Tensor((32, 64), "float32"), P: T.Tensor((32, 64), "float16")):
        with T.Kernel(1, threads=2, is_npu=True) as (cid):
            s = T.alloc_shared([32, 64], "float")
            m = T.alloc_shared([32], "float")
            T.copy(S[cid * 32 : (cid + 1) * 32, :], s)
            T.reduce_max(s, m, dim=-1)
            for h_i in range(32):
                T.tile.sub(s[h_i, :], s[h_i, :], m[h_i])
            T.copy(s, P[cid * 32 : cid * 32 + 32, :])

    loop = tilelang.jit(main).kernel.body[4]
    row, statistic = Region("s", (var("h_i"), ZERO), (None, 64)), Region("m", (var("h_i"),), (None,))
    assert loop == For("h_i", 0, 32, "serial", 0, (Assign(row, Binary("sub", row, statistic)),))
