"""Columns of whole numbers: of a tensor, and of a buffer in an element loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tile_eg.errors import TileError

OF_TENSOR = """kernel column[M: dyn](X: {0}[M, 24]) -> Z: {0}[M{1}] {{
  grid b = ceildiv(M, 16)
  shared v: {0}[16]
  v = X[b*16:b*16 + 16, 23]
  {2}
}}
"""
OF_BUFFER = """kernel column(X: {0}[16, 24]) -> Z: {0}[16] {{
  grid b = 1
  shared x: {0}[16, 24], v: {0}[16]
  x = X[0, 0]
  parallel i in (16) {{ v[i] = x[i, 3] + x[i, 0] }}
  Z[0] = v
}}
"""
ALONE, BESIDE = ("", "Z[b*16] = v"), (", 2", "for j in serial(2) { Z[b*16:b*16 + 16, j] = v }")


def kernel(folder: Path, text: str) -> tile_eg.jit.TileKernel:
    (folder / "column.tile").write_text(text)
    return tile_eg.load(folder / "column.tile", effort="none")


def numbers(rows: int, dtype: str) -> np.ndarray:
    ends = np.iinfo(dtype)
    return np.random.default_rng(0).integers(ends.min, ends.max, (rows, 24), endpoint=True, dtype=dtype)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("of", "dtype", "stored"),
    [("i8", "int8", ALONE), ("u8", "uint8", ALONE), ("i16", "int16", BESIDE), ("u16", "uint16", BESIDE),
     ("i32", "int32", BESIDE), ("u32", "uint32", BESIDE)],
)  # fmt: skip
def test_a_column_of_a_tensor_is_a_vector(tmp_path: Path, of: str, dtype: str, stored: tuple[str, str]) -> None:
    column = kernel(tmp_path, OF_TENSOR.format(of, *stored))
    for rows in (16, 21):
        x = numbers(rows, dtype)
        found = column(x)
        assert np.array_equal(found if found.ndim == 1 else found[:, 1], x[:, 23])


@pytest.mark.slow
@pytest.mark.parametrize(("of", "dtype"), [("i32", "int32"), ("u16", "uint16")])
def test_a_column_of_a_buffer_is_gathered(tmp_path: Path, of: str, dtype: str) -> None:
    x = numbers(16, dtype) // 2
    assert np.array_equal(kernel(tmp_path, OF_BUFFER.format(of))(x), x[:, 3] + x[:, 0])


def test_a_column_of_bytes_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="a column of i8 is loaded, and not stored"):
        kernel(tmp_path, OF_TENSOR.format("i8", *BESIDE))(numbers(16, "int8"))
