"""Tiles that are read in another order than they are written: transposed, every second column, backwards."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ops.types import DTYPES
from tile_eg.search.compiler import lower

HEAD = "kernel k(X: {0}[32, 64]) -> (Y: {0}[64, 32], Z: {0}[32, 32]) {{ shared x: {0}[32, 64], y: {0}[64, 32], z: {0}[32, 32]\n"
REST = " x = X[0, 0]\n {} Y[0, 0] = y\n Z[0, 0] = z }}"
FORMS = {
    "loops": "parallel (i, j) in (64, 32) { y[i, j] = x[j, i] }\n"
             " parallel (i, j) in (32, 32) { z[i, j] = x[i, 2*j] + x[i, 63 - j] }",
    "values": "y = x.T\n parallel (i, j) in (32, 32) { z[i, j] = x[j, 2*i] + x[i, 63 - j] }\n z = z.T\n"
              " parallel (i, j) in (32, 32) { z[i, j] = x[i, 2*j] + x[i, 63 - j] }",
}  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("form", FORMS)
def test_elements_come_from_where_they_are_read(form: str, dtype: str) -> None:
    if (form, dtype) == ("values", "bf16"):
        pytest.skip("whole tiles of bf16 are refused; the next test says so")
    kernel = load_text(HEAD.format(dtype) + REST.format(FORMS[form])).instantiate()
    x = np.random.default_rng(1).integers(-8, 8, (32, 64)).astype(numpy_dtype(DTYPES[dtype]))
    run = lower(kernel).run({"X": x})
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(run["Y"].astype(np.float32), wide.T)
    np.testing.assert_array_equal(run["Z"].astype(np.float32), wide[:, ::2] + wide[:, :31:-1])


@pytest.mark.slow
def test_an_expression_is_transposed_in_a_loop() -> None:
    text = """kernel k(X: f32[4, 32, 64]) -> Y: f32[64, 32] {
      shared x: f32[32, 64], y: f32[64, 32] = 0
      for k in serial(4) { x = X[k, 0, 0]  y = y + (x * 2).T } Y[0, 0] = y }"""
    x = np.random.default_rng(1).integers(-8, 8, (4, 32, 64)).astype(np.float32)
    run = lower(load_text(text).instantiate()).run({"X": x})
    np.testing.assert_array_equal(run["Y"], 2 * x.sum(axis=0).T)


@pytest.mark.slow
def test_the_same_elements_are_a_tile_and_a_vector() -> None:
    text = """kernel k(X: f32[4, 64]) -> (A: f32[4, 32], B: f32[128], C: f32[4]) {
      shared x: f32[4, 64], z: f32[4, 64], a: f32[4, 32]
      x = X[0, 0]
      z = x * 2
      parallel (i, j) in (4, 32) { a[i, j] = z[i, 2*j] }
      A[0, 0] = a
      C[0] = rowsum(a + 1)
      B[0] = every(z, 0, 2) + 1 }"""
    x = np.random.default_rng(1).integers(-8, 8, (4, 64)).astype(np.float32)
    run = lower(load_text(text).instantiate()).run({"X": x})
    np.testing.assert_array_equal(run["A"], 2 * x[:, ::2])
    np.testing.assert_array_equal(run["B"], 2 * x[:, ::2].reshape(-1) + 1)
    np.testing.assert_array_equal(run["C"], (2 * x[:, ::2] + 1).sum(axis=1))


def error_of(text: str) -> TileError:
    with pytest.raises(TileError) as caught:
        kernel = load_text(text, "x.tile").instantiate()
        check(kernel)
        to_values(kernel)
    return caught.value


@pytest.mark.parametrize(("body", "message"), [
    ("y = X[0, 0].T", "only a tile of two dimensions is transposed as a value"),
    ("y = v.T", "only a tile of two dimensions is transposed as a value"),
    ("x = x.T", "`x` takes 32 x 64 here, the value is f32[64, 32]"),
    ("parallel (i, j) in (64, 32) { y[i, j] = x.T }", "an element loop takes elements, and `.T` is of a tile"),
])  # fmt: skip
def test_what_cannot_be_transposed_is_told(body: str, message: str) -> None:
    text = HEAD.format("f32").replace("z: f32[32, 32]", "z: f32[32, 32] = 0, v: f32[32] = 0") + REST.format(body)
    assert error_of(text).message == message


def taken(rows: int, cols: int, loaded: int, to: tuple[int, int], element: str) -> tuple[np.ndarray, np.ndarray]:
    """A tensor, and what a loop takes of its tiles of `loaded` rows into tiles of a size."""
    m, n = to
    text = f"""kernel k(X: f32[{rows}, {cols}]) -> Y: f32[{rows * m // loaded}, {n}] {{
      grid b = {-(-rows // loaded)}
      shared x: f32[{loaded}, {cols}] fragment y: f32[{m}, {n}]
      x = X[b*{loaded}, 0]
      parallel (i, j) in ({m}, {n}) {{ y[i, j] = {element} }}
      Y[b*{m}, 0] = y }}"""
    x = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    return x, lower(load_text(text).instantiate()).run({"X": x})["Y"]


def test_elements_two_apart_fill_rows_that_are_no_whole_blocks() -> None:
    x, y = taken(8, 56, 8, (4, 28), "x[2*i + 1, 2*j]")
    np.testing.assert_array_equal(y, x[1::2, ::2])


def test_rows_two_apart_end_with_their_tensor() -> None:
    x, y = taken(10, 32, 8, (4, 16), "x[2*i, 2*j + 1]")
    np.testing.assert_array_equal(y, x[::2, 1::2])


def test_rows_that_are_repeated_end_with_their_tensor() -> None:
    x, y = taken(5, 16, 4, (8, 32), "x[i // 2, j // 2]")
    np.testing.assert_array_equal(y, x.repeat(2, 0).repeat(2, 1))


def test_every_second_element_is_taken_of_rows_that_are_no_whole_blocks() -> None:
    x, y = taken(3, 10, 3, (3, 5), "x[i, 2*j]")
    np.testing.assert_array_equal(y, x[:, ::2])
