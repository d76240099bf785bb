"""Whole numbers, bits and masks of TileLang's words: what the kernels store is what NumPy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.search.compiler import check_kernel

M, N = 16, 64
H = 128


def masks() -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((M, N), "float32")
            b = T.alloc_shared((M, N), "float32")
            c = T.alloc_shared((M, N), "float32")
            larger = T.alloc_shared((M, N // 8), "uint8")
            small = T.alloc_shared((M, N // 8), "uint8")
            T.copy(A, a)
            T.copy(B, b)
            T.tile.compare(larger, a, b, "GT")
            T.tile.compare(small, a, T.float32(0.5), "LE")
            T.tile.bitwise_and(larger, larger, small)
            T.tile.select(c, larger, a, b, "VSEL_TENSOR_TENSOR_MODE")
            T.tile.compare(larger, a, a, "EQ")
            T.tile.fill(b, 7.0)
            T.tile.select(c, larger, c, b, "VSEL_CMPMASK_SPR")
            T.copy(c, C)

    return main


@pytest.mark.slow
def test_a_mask_is_that_of_the_comparison_that_was_there() -> None:
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, (M, N)).astype(np.float32) for _ in range(2))
    a[0, :4] = np.nan
    found = tile_eg.jit(out_idx=[2])(masks)()(a, b)
    assert np.array_equal(np.asarray(found), np.where(np.isnan(a), 7, np.where((a > b) & (a <= 0.5), a, b)))


def bits() -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), "int32"), C: T.Tensor((M, N), "int32"), D: T.Tensor((M, N), "uint32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((M, N), "int32")
            i = T.alloc_shared((M, N), "int32")
            m = T.alloc_shared((M, N), "int32")
            u = T.alloc_shared((M, N), "uint32")
            T.copy(A, a)
            T.tile.createvecindex(i, 5)
            T.tile.fill(m, 12)
            T.tile.bitwise_and(i, i, m)
            T.tile.bitwise_lshift(i, i, 2)
            T.tile.bitwise_xor(i, i, m)
            T.tile.mul(i, i, a)
            T.tile.bitwise_lshift(i, i, 5)
            T.reinterpretcast(u, i, "uint32_t")
            T.tile.bitwise_rshift(u, u, 3)
            T.copy(i, C)
            T.copy(u, D)

    return main


@pytest.mark.slow
def test_whole_numbers_keep_their_low_bits() -> None:
    a = np.random.default_rng(1).integers(-(2**31), 2**31, (M, N)).astype(np.int32)
    c, d = tile_eg.jit(out_idx=[1, 2])(bits)()(a)
    place = (np.arange(M * N).reshape(M, N) + 5).astype(np.int32)
    want = ((((place & 12) << 2) ^ 12) * a) << 5
    assert np.array_equal(np.asarray(c), want)
    assert np.array_equal(np.asarray(d), want.view(np.uint32) >> 3)


def nibbles() -> Any:
    @T.prim_func
    def main(B: T.Tensor((4, 2 * H), "uint8"), W: T.Tensor((4, 4 * H), "int8")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            packed = T.alloc_shared((H,), "uint8")
            short = T.alloc_shared((H,), "float16")
            bits = T.alloc_shared((H,), "int16")
            mask = T.alloc_shared((H,), "int16")
            low = T.alloc_shared((H,), "int16")
            half = T.alloc_shared((H,), "float16")
            negative = T.alloc_shared((H,), "uint8")
            minus = T.alloc_shared((H,), "float16")
            zero = T.alloc_shared((H,), "float16")
            low8 = T.alloc_shared((H,), "int8")
            high8 = T.alloc_shared((H,), "int8")
            both = T.alloc_shared((2 * H,), "int8")
            T.tile.fill(mask, 15)
            T.tile.fill(zero, 0.0)
            for row in T.serial(4):
                for k in T.serial(2):
                    T.copy(B[row, k * H], packed)
                    T.tile.cast(short, packed, "CAST_NONE", H)
                    T.tile.cast(bits, short, "CAST_RINT", H)
                    T.tile.bitwise_and(low, bits, mask)
                    T.tile.bitwise_rshift(bits, bits, 4)
                    T.tile.cast(half, low, "CAST_NONE", H)
                    T.tile.compare(negative, half, T.float16(8.0), "GE")
                    T.tile.fill(minus, -16.0)
                    T.tile.select(minus, negative, minus, zero, "VSEL_CMPMASK_SPR")
                    T.tile.add(half, half, minus)
                    T.tile.cast(low8, half, "CAST_RINT", H)
                    T.tile.cast(high8, bits, "CAST_NONE", H)
                    for j in T.serial(H):
                        both[j * 2] = low8[j]
                        both[j * 2 + 1] = high8[j]
                    T.copy(both, W[row, k * 2 * H])

    return main


@pytest.mark.slow
def test_nibbles_become_bytes_in_turns() -> None:
    b = np.random.default_rng(2).integers(0, 256, (4, 2 * H)).astype(np.uint8)
    found = tile_eg.jit(out_idx=[1])(nibbles)()(b)
    low = (b & 15).astype(np.int8)
    assert np.array_equal(np.asarray(found), np.stack([low - 16 * (low >= 8), b >> 4], -1).reshape(4, -1).astype(np.int8))


def flags() -> Any:
    @T.prim_func
    def main(A: T.Tensor((40, 256), "int32"), K: T.Tensor((40, 32), "uint8"), C: T.Tensor((40, 256), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, _):
            a = T.alloc_shared((20, 128), "int32")
            c = T.alloc_shared((20, 128), "int32")
            k = T.alloc_shared((20, 16), "uint8")
            T.copy(A[cid // 2 * 20, cid % 2 * 128], a)
            T.copy(K[cid // 2 * 20, cid % 2 * 16], k)
            T.tile.select(c, k, a, 7, "VSEL_TENSOR_SCALAR_MODE")
            T.copy(c, C[cid // 2 * 20, cid % 2 * 128])

    return main


@pytest.mark.slow
def test_loaded_bits_select() -> None:
    random = np.random.default_rng(3)
    a, k = random.integers(-(2**31), 2**31, (40, 256)).astype(np.int32), random.integers(0, 256, (40, 32)).astype(np.uint8)
    found = tile_eg.jit(out_idx=[2])(flags)()(a, k)
    assert np.array_equal(np.asarray(found), np.where(np.unpackbits(k, axis=-1, bitorder="little"), a, 7))


def stored_masks(dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), C: T.Tensor((M, N // 8), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((M, N), "float32")
            b = T.alloc_shared((M, N), "float32")
            c = T.alloc_shared((M, N // 8), dtype)
            T.copy(A, a)
            T.copy(B, b)
            T.tile.compare(c, a, b, "GE")
            T.copy(c, C)

    return main


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_mask_is_stored_as_its_bits(dtype: str) -> None:
    random = np.random.default_rng(4)
    a, b = (random.integers(-2, 3, (M, N)).astype(np.float32) for _ in range(2))
    found = np.asarray(tile_eg.jit(out_idx=[2])(stored_masks)(dtype)(a, b))
    assert found.dtype == dtype
    assert np.array_equal(found.view(np.uint8), np.packbits(a >= b, axis=-1, bitorder="little"))


DECLARED = (
    'bits = T.alloc_shared((16, 16), "uint8")',
    'few = T.alloc_shared((16, 8), "uint8")',
    'whole = T.alloc_shared((16, 128), "int32")',
    'T.clear(whole)',
    'T.clear(f)',
)
FAULTS = {
    "a mask of nothing": ('T.tile.select(x, f, x, y, "VSEL_CMPMASK_SPR")', "f holds no mask", "T.tile.compare("),
    "too few bits": (
        'T.tile.fill(few, 1)\nT.tile.select(x, few, x, y, "VSEL_CMPMASK_SPR")', "holds no bit for each element", "a byte",
    ),
    "a comparison that is none": ('T.tile.compare(bits, x, y, "GTE")', "there is no comparison 'GTE'", "did you mean"),
    "a mode that is none": ('T.tile.select(x, bits, x, y, "SPR")', "a selection has no mode 'SPR'", "VSEL_CMPMASK_SPR"),
    "a mask that is no buffer": ('T.tile.compare(A, x, x, "GT")', "a mask is kept in a buffer of uint8", "uint8"),
    "bits read as numbers": (
        'T.tile.compare(bits, x, y, "GT")\nT.copy(bits, whole)', "bits holds the bits of a comparison", "T.if_then_else(x > y",
    ),
    "bits of the trip before read as numbers": (
        'for k in T.serial(3):\n    T.tile.add(f, f, x)\n    T.tile.compare(f, x, y, "GT")',
        "f holds the bits of a comparison", "T.if_then_else(x > y",
    ),
    "bits of floats": ("T.tile.bitwise_and(x, x, y)", "`&` takes i16, u16, i32, u32", ""),
    "a broken number": ("T.tile.add(whole, whole, 0.5)", "0.5 is no i32", ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_cannot_be_said_names_a_way_out(name: str, python_kernel: Any) -> None:
    line, message, help = FAULTS[name]
    head = "".join(f"{line}\n" for line in DECLARED)
    with pytest.raises(TileError) as caught:
        check_kernel(python_kernel(head + line))
    assert message in caught.value.message
    assert help in caught.value.help


NEAR = {
    "T.maximum(x, y)": "write T.max(x, y)", "T.tile.reduce_prod(x, v)": "did you mean T.tile.reduce_sum?", 
    "T.median(x)": "T.tile.sort(pairs, row, n) of each row",
    "T.reduce_absmx(x, v)": "did you mean T.reduce_absmax?", "T.axpy(y, x, 2.0)": "did you mean T.tile.axpy?",
}  # fmt: skip


@pytest.mark.parametrize("call", NEAR)
def test_a_word_that_is_not_there_names_what_is(call: str, python_kernel: Any) -> None:
    with pytest.raises(TileError) as caught:
        python_kernel(call)
    assert NEAR[call] in caught.value.help
