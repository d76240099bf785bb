"""Whole numbers of every width, in searched kernels and in kept ones: what is stored is what NumPy computes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.jit import CompiledKernel

SHAPE = (8, 64)
BYTES, WORDS = ("int8", "uint8"), ("int16", "uint16", "int32", "uint32")
KEPT = pytest.mark.parametrize("kept", [False, True], ids=["searched", "kept"])
TEXT = """@T.prim_func
def f(X: T.Tensor({shape}, "{of}"), Z: T.Tensor({shape}, "{of}"), Y: T.Tensor({out}, "{to}")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x, z, y = T.alloc_ub({shape}, "{of}"), T.alloc_ub({shape}, "{of}"), T.alloc_ub({out}, "{to}")
        T.copy(X, x)
        T.copy(Z, z)
{lines}
        T.copy(y, Y)
"""


@functools.cache
def compiled(lines: str, of: str, to: str, out: tuple[int, ...], kept: bool) -> CompiledKernel:
    indented = "\n".join(8 * " " + line for line in (["T.pipe_barrier('v')"] if kept else []) + lines.split("\n"))
    text = TEXT.format(shape=SHAPE, of=of, to=to, out=out, lines=indented)
    if kept:
        text = text.replace("as (cid, vid)", "as cid")
    configs = {"tl.ascend_auto_sync": True} if kept else {}
    return tile_eg.compile(prim_func(text), out_idx=[-1], pass_configs=configs)


def numbers(dtype: str, low: int | None = None, high: int | None = None) -> np.ndarray:
    random = np.random.default_rng(3)
    if "int" not in dtype:
        return random.uniform(low or 0, high or 1, SHAPE).astype(dtype)
    limits = np.iinfo(dtype)
    low, high = (limits.min if low is None else low), (limits.max if high is None else high)
    return random.integers(low, high, SHAPE, endpoint=True).astype(dtype)


def stored(lines: str, x: np.ndarray, z: np.ndarray, to: str = "", out: tuple[int, ...] = SHAPE, kept: bool = False) -> Any:
    return compiled(lines, x.dtype.name, to or x.dtype.name, out, kept)(x, z)


ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {
    "add": lambda x, z: x + z, "sub": lambda x, z: x - z, "mul": lambda x, z: x * z, "max": np.maximum, "min": np.minimum,
    "bitwise_and": lambda x, z: x & z, "bitwise_or": lambda x, z: x | z, "bitwise_xor": lambda x, z: x ^ z,
}  # fmt: skip


@pytest.mark.few(2)
@KEPT
@pytest.mark.parametrize("dtype", [*BYTES, "uint16", "uint32"])
@pytest.mark.slow
def test_arithmetic_keeps_the_lowest_bits(dtype: str, kept: bool) -> None:
    x, z = numbers(dtype), numbers(dtype)[::-1].copy()
    for word, meaning in ARITHMETIC.items():
        assert (stored(f"T.tile.{word}(y, x, z)", x, z, kept=kept) == meaning(x, z)).all(), word


@pytest.mark.few(2)
@pytest.mark.slow
@KEPT
@pytest.mark.parametrize("dtype", BYTES)
def test_bytes_are_shifted_turned_and_spread(dtype: str, kept: bool) -> None:
    x = numbers(dtype)
    assert (stored("T.tile.bitwise_lshift(y, x, 3)", x, x, kept=kept) == x << 3).all()
    assert (stored("T.tile.bitwise_rshift(y, x, 3)", x, x, kept=kept) == x >> 3).all()
    assert (stored("T.tile.bitwise_not(y, x)", x, x, kept=kept) == ~x).all()
    lines = "for i, j in T.Parallel(8, 64):\n    y[i, j] = x[i, j] + z[0, j]"
    assert (stored(lines, x, x, kept=kept) == x + x[0]).all()


@KEPT
@pytest.mark.slow(but=1)
def test_a_shift_to_the_right_by_all_bits_leaves_the_sign(kept: bool) -> None:
    x = numbers("int32")
    assert (stored("T.tile.bitwise_rshift(y, x, 32)", x, x, kept=kept) == np.where(x < 0, -1, 0)).all()


@pytest.mark.few(3)
@pytest.mark.slow
@KEPT
@pytest.mark.parametrize("dtype", [*BYTES, "int32"])
def test_one_element_stands_for_all(dtype: str, kept: bool) -> None:
    x = numbers(dtype)
    lines = "v = T.alloc_ub((64,), '" + dtype + "')\nT.copy(x[1, :], v)\nT.tile.add(y, x, v[3])"
    assert (stored(lines, x, x, kept=kept) == x + x[1, 3]).all()


CASTS = [("uint16", "float32"), ("uint32", "float32"), ("float32", "uint16"), ("float32", "uint32"), ("uint16", "int32"),
         ("int32", "uint16"), ("uint32", "uint16"), ("float32", "uint8"), ("int8", "bfloat16"), ("uint32", "int8")]  # fmt: skip


def saturated(x: np.ndarray, to: str) -> np.ndarray:
    if to == "bfloat16":
        import ml_dtypes

        return x.astype(ml_dtypes.bfloat16)
    if "int" not in to:
        return x.astype(to)
    limits = np.iinfo(to)
    return np.clip(np.rint(x.astype(np.float64)), limits.min, limits.max).astype(to)


@pytest.mark.few(9)
@KEPT
@pytest.mark.parametrize(("of", "to"), CASTS)
@pytest.mark.slow
def test_a_cast_rounds_once_and_saturates(of: str, to: str, kept: bool) -> None:
    x = numbers(of) if "int" in of else numbers(of, -100, 70000 if to == "uint16" else 2**33)
    assert (np.asarray(stored('T.tile.cast(y, x, "CAST_RINT", 512)', x, x, to, kept=kept)) == saturated(x, to)).all()


@pytest.mark.slow
@KEPT
def test_floats_are_rounded_to_whole_numbers_as_the_mode_says(kept: bool) -> None:
    x = numbers("float32", -9, 9)
    for mode, meaning in (("RINT", np.rint), ("FLOOR", np.floor), ("NONE", lambda x: x)):
        assert (stored(f'T.tile.cast(y, x, "CAST_{mode}", 512)', x, x, kept=kept) == meaning(x)).all()
    half = x.astype(np.float16)
    assert (stored('T.tile.cast(y, x, "CAST_FLOOR", 512)', half, half, "float32", kept=kept) == half).all()


@pytest.mark.few(2)
@pytest.mark.slow
@KEPT
@pytest.mark.parametrize(("dim", "out"), [(1, (8,)), (0, (64,))])
def test_whole_numbers_are_reduced_exactly(dim: int, out: tuple[int, ...], kept: bool) -> None:
    x = numbers("int32")
    for op, meaning in (("max", np.max), ("min", np.min), ("sum", np.sum)):
        found = stored(f"T.reduce_{op}(x, y, dim={dim})", x, x, out=out, kept=kept)
        assert (found == meaning(x, axis=dim).astype(np.int32)).all(), op


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "uint32"])
@pytest.mark.slow
def test_rows_of_other_types_are_reduced_in_searched_kernels(dtype: str) -> None:
    x = numbers(dtype)
    assert (stored("T.reduce_max(x, y, dim=1)", x, x, out=(8,)) == x.max(1)).all()
    assert (stored("T.reduce_sum(x, y, dim=1)", x, x, out=(8,)) == x.sum(1, dtype=dtype)).all()


@pytest.mark.slow
def test_bytes_beside_a_part_that_is_written_stay() -> None:
    x, z = numbers("uint8"), numbers("uint8")[::-1].copy()
    found = stored("T.copy(x, y)\nT.tile.fill(y[0:8, 0:32], 7)\nT.copy(z[0:4, 32:64], y[0:4, 32:64])", x, z, kept=True)
    wanted = x.copy()
    wanted[:, :32] = 7
    wanted[:4, 32:] = z[:4, 32:]
    assert (found == wanted).all()


def test_an_odd_number_of_bytes_is_refused() -> None:
    from tile_eg.errors import TileError

    with pytest.raises(TileError, match="bytes are written two at a time, and 31 of y are an odd number"):
        stored("T.copy(x, y)\nT.copy(z[0:8, 0:31], y[0:8, 0:31])", numbers("uint8"), numbers("uint8"), kept=True)


@pytest.mark.slow
def test_numbers_of_four_bits_are_taken_out_of_bytes() -> None:
    x = numbers("uint8")
    lines = "for i, j in T.Parallel(8, 64):\n    y[i, 2 * j] = x[i, j] & 15\n    y[i, 2 * j + 1] = x[i, j] >> 4"
    assert (stored(lines, x, x, out=(8, 128)) == np.stack([x & 15, x >> 4], 2).reshape(8, 128)).all()


POSITIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "T.tile.createvecindex(y, 3)": lambda i, j: 64 * i + j + 3,
    "for i, j in T.Parallel(8, 64):\n    y[i, j] = i * 8000 + j + 3": lambda i, j: 8000 * i + j + 3,
    "for i, j in T.Parallel(8, 64):\n    y[i, j] = T.if_then_else(j > 3, T.max(i * 64 + j, 70), 2)":
        lambda i, j: np.where(j > 3, np.maximum(64 * i + j, 70), 2),
}  # fmt: skip


@pytest.mark.few(6)
@pytest.mark.slow(but=1)
@KEPT
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("lines", POSITIONS)
def test_positions_fill_buffers_of_numbers_without_a_sign(lines: str, dtype: str, kept: bool) -> None:
    x = numbers(dtype)
    assert (stored(lines, x, x, kept=kept) == POSITIONS[lines](*np.ogrid[:8, :64])).all()


def test_positions_that_uint16_may_not_hold_are_refused_in_kept_kernels() -> None:
    with pytest.raises(TileError, match="positions of uint16 surely have to be below 32768 here"):
        stored("T.tile.createvecindex(y, 32500)", numbers("uint16"), numbers("uint16"), kept=True)
