"""Operations on whole tiles, of tiles that a tensor's end cuts off and whose rows have gaps between them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

M, N, BM, BN = 50, 101, 24, 45
KERNEL = """
kernel ends[M=50, N=101](X: {dtype}[M, N]) -> Y: {result} {{
  grid (bx, by) = (ceildiv(M, 24), ceildiv(N, 45))
  shared x: {dtype}[24, 45], y: {buffer}
  x = X[bx*24, by*45]
  {body}
}}
"""
TURNED = {"result": "{dtype}[N, M]", "buffer": "{dtype}[45, 24]"}
ALIKE = {"result": "{dtype}[M, N]", "buffer": "{dtype}[24, 45]"}
NUMPY: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i32": np.int32}


def blocks() -> list[tuple[slice, slice]]:
    return [(slice(i, min(i + BM, M)), slice(j, min(j + BN, N))) for j in range(0, N, BN) for i in range(0, M, BM)]


def run(dtype: str, body: str, forms: dict[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """What a kernel with this body is given and what it gives."""
    said = {name: form.format(dtype=dtype) for name, form in forms.items()}
    kernel = load_text(KERNEL.format(dtype=dtype, body=body, **said)).instantiate()
    x = np.random.default_rng(0).integers(-50, 50, (M, N)).astype(NUMPY[dtype])
    return x, lower(kernel).run({"X": x})["Y"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8"])
def test_rows_become_columns(dtype: str) -> None:
    x, y = run(dtype, "y = x.T  Y[by*45, bx*24] = y", TURNED)
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.slow
def test_so_they_do_in_an_element_loop() -> None:
    x, y = run("f32", "parallel (i, j) in (45, 24) { y[i, j] = x[j, i] * 2 }  Y[by*45, bx*24] = y", TURNED)
    np.testing.assert_array_equal(y, 2 * x.T)


@pytest.mark.few(2)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("call", "axis"), [("cumsum(x)", 1), ("cumsum(x, 0)", 0)])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_running_sums_end_with_their_tensor(dtype: str, call: str, axis: int) -> None:
    x, y = run(dtype, f"y = {call}  Y[bx*24, by*45] = y", ALIKE)
    for block in blocks():
        np.testing.assert_array_equal(y[block], np.cumsum(x[block].astype(np.float32), axis).astype(x.dtype))


@pytest.mark.slow
@pytest.mark.parametrize(("call", "axis"), [("argmax(x)", 1), ("argmin(x, 0)", 0)])
def test_places_of_extremes_are_those_of_what_exists(call: str, axis: int) -> None:
    rows, count, at = (("3, M", 24, "by, bx*24"), ("3, N", 45, "bx, by*45"))[1 - axis]
    x, y = run("f32", f"y = {call}  Y[{at}] = y", {"result": f"i32[{rows}]", "buffer": f"i32[{count}]"})
    for n, (down, along) in enumerate(blocks()):
        part, row = x[down, along], n // 3 if axis == 1 else n % 3
        np.testing.assert_array_equal(y[row, down if axis else along], (np.argmax if axis else np.argmin)(part, axis))


@pytest.mark.slow
@pytest.mark.parametrize(("call", "dtype", "rows"), [("cumsum(x, 0)", "f32", "1, 37"), ("argmin(x, 0)", "i32", "37")])
def test_an_axis_of_one_row_is_its_own(call: str, dtype: str, rows: str) -> None:
    at = "0, 0" if "," in rows else "0"
    text = f"""kernel k(X: f32[1, 37]) -> Y: {dtype}[{rows}] {{
      shared x: f32[1, 37], y: {dtype}[{rows}] x = X[0, 0] y = {call} Y[{at}] = y
    }}"""
    x = np.random.default_rng(0).integers(-50, 50, (1, 37)).astype(np.float32)
    want = x if "sum" in call else np.zeros(37)
    np.testing.assert_array_equal(lower(load_text(text).instantiate()).run({"X": x})["Y"], want)


@pytest.mark.slow
def test_what_is_no_number_beyond_the_end_counts_for_nothing() -> None:
    """Sums of negative numbers: a 0 beyond the end would be the largest."""
    forms = {"result": "f32[3, M]", "buffer": "f32[24]"}
    x, y = run("f32", "x = x - 100  y = rowmax(cumsum(x))  Y[by, bx*24] = y", forms)
    for n, (down, along) in enumerate(blocks()):
        np.testing.assert_array_equal(y[n // 3, down], (x[down, along] - 100)[:, 0])


@pytest.mark.slow
def test_sums_behind_running_sums_take_what_exists() -> None:
    """The last running sum goes on beyond the end."""
    forms = {"result": "f32[3, M]", "buffer": "f32[24]"}
    x, y = run("f32", "y = rowsum(cumsum(x))  Y[by, bx*24] = y", forms)
    for n, (down, along) in enumerate(blocks()):
        np.testing.assert_array_equal(y[n // 3, down], np.cumsum(x[down, along], axis=1).sum(1))


@pytest.mark.slow
def test_every_second_element_of_rows_that_end() -> None:
    text = """
    kernel turns[M=21, N=96](X: bf16[M, N]) -> Y: bf16[M, N] {
      grid bx = ceildiv(M, 8)
      shared x: bf16[8, N], y: bf16[8, N]
      x = X[bx*8, 0]
      parallel (i, j) in (8, 48) { y[i, j] = x[i, 2*j]  y[i, j + 48] = x[i, 2*j + 1] }
      Y[bx*8, 0] = y
    }"""
    x = np.random.default_rng(0).integers(-50, 50, (21, 96)).astype(ml_dtypes.bfloat16)
    y = lower(load_text(text).instantiate()).run({"X": x})["Y"]
    np.testing.assert_array_equal(y, np.concatenate([x[:, ::2], x[:, 1::2]], axis=1))


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("dtype", "cols", "tile"), [("f16", 6, 6), ("f32", 11, 12), ("bf16", 24, 24)])
def test_every_second_element_of_rows_with_gaps(dtype: str, cols: int, tile: int) -> None:
    text = f"""
    kernel turns[M=21](X: {dtype}[M, {cols}]) -> Y: {dtype}[M, {cols // 2}] {{
      grid bx = ceildiv(M, 8)
      shared x: {dtype}[8, {tile}], y: {dtype}[8, {tile // 2}]
      x = X[bx*8, 0]
      parallel (i, j) in (8, {tile // 2}) {{ y[i, j] = x[i, 2*j + 1] }}
      Y[bx*8, 0] = y
    }}"""
    x = np.random.default_rng(0).integers(-50, 50, (21, cols)).astype(NUMPY[dtype])
    np.testing.assert_array_equal(lower(load_text(text).instantiate()).run({"X": x})["Y"], x[:, 1::2])


def test_an_order_by_value_has_no_end() -> None:
    text = "kernel k(X: f32[20, 64]) -> Y: f32[4096] { shared x: f32[32, 64], y: f32[4096] x = X[0, 0] y = sort(x) Y[0] = y }"
    with pytest.raises(TileError, match="that a tensor's end cuts off is not supported yet"):
        lower(load_text(text).instantiate())
