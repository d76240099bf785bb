"""Loops over rows by hand, beside a product: vectors become tiles of rows, and go along with the product that takes them."""

from __future__ import annotations

import functools
import tomllib

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.checks.kernel import stored_alike
from tile_eg.frontend.python import kernel_of
from tile_eg.frontend.python.row_tiles import rows_of_tensor

K, N = 64, 32
A = np.random.default_rng(0).integers(-8, 8, (64, K)).astype(np.int8)
B = np.random.default_rng(1).integers(-60, 60, (N, K)).astype(np.int8)


def doubled(M: int = 32, offset: int = 0, fill: str = "scale", whole: bool = True):
    """B * 2 goes to W row by row, each half of the rows by a vector core; A times its transpose is C. Blocks of 32 x 16, so that
    rows of blocks store the same to W."""
    blocks = N // 16

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "int8"), B: T.Tensor((N, K), "int8"), W: T.Tensor((N, K), "int8"), C: T.Tensor((M, N), "int32")
    ):
        with T.Kernel(M // 32 * blocks, is_npu=True) as (cid, vid):
            bm, bn = cid // blocks, cid % blocks
            b = T.alloc_shared((32,), "int8")
            wide = T.alloc_shared((32,), "float16")
            scale = T.alloc_shared((32,), "float16")
            back = T.alloc_shared((32,), "int8")
            T.tile.fill(scale, 2.0)
            for row in T.serial(8):
                n = bn * 16 + vid * 8 + row
                for k in T.serial(K // 32):
                    T.copy(B[n, k * 32], b)
                    T.tile.cast(wide, b, "CAST_NONE", 32)
                    if fill == "scale":
                        T.tile.mul(wide, wide, scale)
                    else:
                        T.tile.mul(wide, wide, bm + 1.0)
                    T.tile.cast(back, wide, "CAST_RINT", 32)
                    T.copy(back, W[n, k * 32])
            a_l1 = T.alloc_shared((32, 32), "int8")
            b_l1 = T.alloc_shared((16, 32), "int8")
            c_l0 = T.alloc_fragment((32, 16), "int32")
            for k in T.serial(K // 32):
                T.copy(A[bm * 32, k * 32], a_l1)
                T.copy(W[bn * 16 + offset, k * 32], b_l1)
                T.gemm_v0(a_l1, b_l1, c_l0, transpose_B=True, init=(k == 0))
            T.copy(c_l0, C[bm * 32, bn * 16])

    return main


@functools.cache
def kernel(M: int):
    return tile_eg.jit(doubled(M), out_idx=[-1], effort="none")


def product(a):
    return a.astype(np.int32) @ (B * 2).astype(np.int32).T


@pytest.mark.slow
def test_rows_that_each_vector_core_makes_by_itself_are_one_tile_of_the_product() -> None:
    w = np.zeros_like(B)
    assert (kernel(32)(A[:32], B, w) == product(A[:32])).all()
    assert (w == B * 2).all()


@pytest.mark.slow
def test_blocks_that_store_equal_values_do_not_race() -> None:
    assert (kernel(64)(A, B, np.zeros_like(B)) == product(A)).all()


def test_which_tensor_blocks_store_alike_to_is_known() -> None:
    assert stored_alike(kernel(64).kernel) == {"W"}
    assert stored_alike(kernel(32).kernel) == set()


def test_blocks_that_store_different_values_at_one_place_are_told() -> None:
    with pytest.raises(TileError, match="two blocks write the same elements of `W`"):
        tile_eg.jit(doubled(64, fill="block"), out_idx=[-1], effort="none")(A, B, np.zeros_like(B))


def test_rows_that_a_trip_stores_for_another_one_are_not_tiles() -> None:
    @T.prim_func
    def main(B: T.Tensor((9, 64), "float32"), W: T.Tensor((9, 64), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((64,), "float32")
            for row in T.serial(8):
                T.copy(B[row, 0], x)
                T.copy(x, W[row, 0])
                T.tile.add(x, x, 1.0)
                T.copy(x, W[row + 1, 0])

    body = kernel_of(main).body
    assert rows_of_tensor(body, "W") == body


def in_turns():
    """Even and odd elements of each row from the rows of two tensors."""

    @T.prim_func
    def main(
        A: T.Tensor((16, 32), "int8"), B: T.Tensor((16, 16), "int8"), D: T.Tensor((16, 16), "int8"),
        W: T.Tensor((16, 32), "int8"), C: T.Tensor((16, 16), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, is_npu=True) as (cid, vid):
            even = T.alloc_shared((16,), "int8")
            odd = T.alloc_shared((16,), "int8")
            both = T.alloc_shared((32,), "int8")
            for row in T.serial(8):
                T.copy(B[vid * 8 + row, 0], even)
                T.copy(D[vid * 8 + row, 0], odd)
                for j in T.serial(16):
                    both[2 * j] = even[j]
                    both[2 * j + 1] = odd[j]
                T.copy(both, W[vid * 8 + row, 0])
            a = T.alloc_shared((16, 32), "int8")
            w = T.alloc_shared((16, 32), "int8")
            c = T.alloc_fragment((16, 16), "int32")
            T.copy(A[0, 0], a)
            T.copy(W[0, 0], w)
            T.gemm_v0(a, w, c, transpose_B=True, init=True)
            T.copy(c, C[0, 0])

    return main


@pytest.mark.slow
def test_bytes_are_written_in_turns_in_all_rows_at_once() -> None:
    a, even, odd = A[:16, :32], B[:16, :16], B[:16, 16:32]
    w = np.stack([even, odd], -1).reshape(16, 32)
    got = tile_eg.jit(in_turns(), out_idx=[4], effort="none")(a.copy(), even.copy(), odd.copy(), np.zeros_like(w))
    assert (got == a.astype(np.int32) @ w.astype(np.int32).T).all()


def test_the_spec_says_where_blocks_store_alike() -> None:
    tensors = tomllib.loads(kernel(64).compile().spec)["arguments"]
    assert [a["name"] for a in tensors if a.get("alike")] == ["W"]
