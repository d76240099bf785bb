"""The arithmetic of the reference meaning: NumPy arrays, each operation rounded once to its result's dtype."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tile_eg.ops.elementwise import BINARY, COMPARE, REDUCE, UNARY
from tile_eg.ops.types import E1M2, E2M1, EXACT, SCALE_BLOCK, DType
from tile_eg.ops.whole_tiles import WHOLE_TILES

Array = np.ndarray

WHOLE = "iu"
F32 = np.dtype(np.float32)
ALONE = 1 << 18
"""Multiplications of a product up to which OpenBLAS does it in one thread (65536 times 4, in its `interface/gemm.c`)."""
TILES = 1 << 24
"""Multiplications beyond which the threads are worth their start (assumed)."""


def number(value: float) -> Array:
    """A number of the source: in f32, unless it is a whole one of 64 bits that f32 does not hold."""
    whole = EXACT < abs(value) < 1 << 63 and value == int(value)
    return np.asarray(value, np.int64 if whole else np.float32)


def unary(name: str, x: Array) -> Array:
    """One function of each element, computed in f32 at least and rounded to x's dtype; of whole numbers in them."""
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 and x.dtype.kind not in WHOLE else x
    return UNARY[name].meaning(np, wide).astype(x.dtype)


def binary(name: str, x: Array, y: Array) -> Array:
    """Both in one dtype, which is the result's. f32 holds the exact result of a 16-bit operation well enough to round once; whole
    numbers keep their low bits."""
    if x.dtype.itemsize < 4 and x.dtype.kind not in WHOLE:
        return BINARY[name].meaning(np, x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return BINARY[name].meaning(np, x, y).astype(x.dtype)


def compare(op: str, a: Array, b: Array) -> Array:
    """Where `a op b` holds."""
    return COMPARE[op].meaning(np, a, b)


def choose(op: str, a: Array, b: Array, x: Array, y: Array) -> Array:
    """x where `a op b` holds, else y; the comparison is exact, and x and y have one dtype."""
    return np.where(compare(op, *map(compared, (a, b))), x, y)


def compared(x: Array) -> Array:
    """What is compared: floats in f32, whole numbers as they are."""
    return x if x.dtype.kind in WHOLE else x.astype(np.float32)


def choose_at(op: str, steps: tuple[int, int], bound: int, x: Array, y: Array) -> Array:
    """x where `steps[0] * row + steps[1] * col op bound` holds of an element's position, else y. x and y are two tiles of one
    shape and dtype."""
    i, j = np.ogrid[: x.shape[0], : x.shape[1]]
    return np.where(compare(op, steps[0] * i + steps[1] * j, np.asarray(bound)), x, y)


def positions(i: int, j: int, rows: int, cols: int, start: int, dtype: np.dtype = F32) -> Array:
    """i * row + j * col + start of each element of a tile: in f32, exact up to 2^24, or the low bits of whole numbers."""
    return (i * np.arange(rows)[:, None] + j * np.arange(cols) + start).astype(dtype)


def reduce(name: str, x: Array, axis: int) -> Array:
    """A reduction, accumulated in f32 and rounded to x's dtype; of whole numbers exact, their sums' low bits. Of nothing it is
    what takes no part in it, or 0."""
    if not x.shape[axis]:
        return np.full(np.delete(x.shape, axis), 0 if x.dtype.kind in WHOLE else REDUCE[name].neutral, x.dtype)
    if x.dtype.kind in WHOLE:
        return np.asarray(REDUCE[name].meaning(np, x, axis)).astype(x.dtype)
    return np.asarray(REDUCE[name].meaning(np, x.astype(np.float32), axis)).astype(x.dtype)


def matmul(a: Array, b: Array) -> Array:
    """f32 product of f16, bf16 or f32 operands, and of those with scales; of i8 the exact one, in i32."""
    if a.dtype == np.float64:  # with scales, whose products may lie beyond f32 where their sums do not
        return product(a, b).astype(np.float32)
    if a.dtype.kind in WHOLE:
        return product(a.astype(np.float64), b.astype(np.float64)).astype(np.int32)
    return product(a.astype(np.float32), b.astype(np.float32))


def product(a: Array, b: Array) -> Array:
    """`a @ b`; that of two tiles in parts for which NumPy's library starts no threads, as these wait longer than they work."""
    (rows, depth), cols = a.shape, b.shape[1]
    if not ALONE < rows * depth * cols <= TILES:
        return a @ b
    wide = min(cols, max(1, ALONE // (16 * depth)))
    high = max(1, ALONE // (wide * depth))
    out = np.empty((rows, cols), a.dtype)
    for i in range(0, rows, high):
        for j in range(0, cols, wide):
            np.matmul(a[i : i + high], b[:, j : j + wide], out=out[i : i + high, j : j + wide])
    return out


def cast(x: Array, dtype: np.dtype) -> Array:
    """x in another dtype, rounded to nearest; whole numbers of 32 bits become f32 before any other float.

    What becomes a whole number or a float of 8 bits saturates; NaN becomes 0. Whole numbers of one width keep their bits.
    """
    if x.dtype == dtype:
        return x
    if dtype.itemsize == 1 and dtype.kind not in WHOLE:
        return _saturated(x.astype(np.float32), dtype)
    if dtype.kind not in WHOLE:
        return (x.astype(np.float32) if x.dtype.kind in WHOLE and x.dtype.itemsize == 4 else x).astype(dtype)
    if x.dtype.kind in WHOLE and x.dtype.itemsize == dtype.itemsize:
        return x.astype(dtype)
    limits = np.iinfo(dtype)
    if x.dtype.kind in WHOLE:
        return np.clip(x.astype(np.int64), limits.min, limits.max).astype(dtype)
    return np.clip(np.rint(np.nan_to_num(x.astype(np.float64), nan=0.0)), limits.min, limits.max).astype(dtype)


def _saturated(x: Array, dtype: np.dtype) -> Array:
    """Floats of 8 bits: beyond the largest number is the largest one, and NaN is 0."""
    import ml_dtypes

    most = float(ml_dtypes.finfo(dtype).max)
    return np.clip(np.nan_to_num(x, nan=0.0), -most, most).astype(dtype)


def bytes_of(x: Array, dtype: np.dtype) -> Array:
    """The two bytes of each number of 16 bits, the lower one first."""
    return np.ascontiguousarray(x).astype("<i2").view(np.int8).astype(dtype)


_SMALLEST = {
    E2M1: (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
    E1M2: (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75),
}  # fmt: skip
"""Floats of 4 bits by their lower three, the fourth being the sign (OCP Microscaling Formats 1.0; E1M2 by the vendor's name)."""


def scaled(x: Array, scale: Array, packed: DType | None) -> Array:
    """x in f64, each 32 elements of a row times their scale. `packed`: the floats of 4 bits of which a byte of x holds two."""
    return numbers_of(x, packed) * np.repeat(scale.astype(np.float64), SCALE_BLOCK, axis=-1)


def numbers_of(x: Array, packed: DType | None) -> Array:
    """The floats in x as f64, where a byte of it may hold two of 4 bits, the lower half first."""
    if packed is None:
        return x.astype(np.float64)
    bits = np.stack([x.view(np.uint8) & 15, x.view(np.uint8) >> 4], axis=-1).reshape(*x.shape[:-1], -1)
    sizes = np.array(_SMALLEST[packed])
    return np.concatenate([sizes, -sizes])[bits]


def nibbles(x: Array) -> Array:
    """The two numbers of 4 bits of each byte, the lower one first, in f16: -8 to 7."""
    low, high = x.view(np.int8) << 4 >> 4, x.view(np.int8) >> 4
    return np.stack([low, high], axis=-1).reshape(*x.shape[:-1], 2 * x.shape[-1]).astype(np.float16)


def packed(x: Array) -> Array:
    """A byte of eight elements each, a bit for one that is not 0, the first one lowest."""
    return np.packbits(x != 0, axis=-1, bitorder="little")


def whole(op: str, numbers: tuple[int, int], xs: Sequence[Array]) -> Array:
    """An operation on whole tiles: the elements of its result in one run."""
    return np.asarray(WHOLE_TILES[op].meaning(np, *xs, *numbers))


def piece(x: Array, offset: int, shape: tuple[int, int]) -> Array:
    """rows x cols of a tile from an element on."""
    row, col = divmod(offset, x.shape[1])
    return x[row : row + shape[0], col : col + shape[1]].copy()


def panel(x: Array, row: int, rows: int) -> Array:
    """So many rows of a tile from a row on."""
    return x[row : row + rows].copy()


def put(x: Array, y: Array, offset: int) -> Array:
    """A tile with another one in the window that begins at an element."""
    out, (row, col) = x.copy(), divmod(offset, x.shape[1])
    out[row : row + y.shape[0], col : col + y.shape[1]] = y
    return out


def bits_of(x: Array) -> Array:
    """Whether each bit of bytes is 1, the lowest first."""
    return np.unpackbits(np.ascontiguousarray(x).view(np.uint8), axis=-1, bitorder="little").astype(bool)


def nothing(dtype: np.dtype) -> float:
    """What stands where a tile has no element: NaN, or the least of the whole numbers."""
    return np.iinfo(dtype).min if dtype.kind in WHOLE else np.nan
