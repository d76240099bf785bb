"""Vectors that are written as (n, 1) are columns beside a tile; a vector that fits both ways is a row, and a note says so."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.search.compiler import check_kernel, meaning

X = np.random.default_rng(0).uniform(-1, 1, (32, 32)).astype(np.float32)
V = np.random.default_rng(1).uniform(-1, 1, (32, 1)).astype(np.float32)


def kernel(statement: str, shape: str = "(32, 1)") -> Kernel:
    return tile_eg.jit(
        prim_func(
            f"""
@T.prim_func
def f(X: T.Tensor((32, 32), "float32"), V: T.Tensor({shape}, "float32"), Y: T.Tensor((32, 32), "float32")):
    with T.Kernel(1) as bx:
        x = T.alloc_shared((32, 32), "float32")
        v = T.alloc_shared({shape}, "float32")
        y = T.alloc_shared((32, 32), "float32")
        T.copy(X[0, 0], x)
        T.copy(V, v)
        {statement}
        T.copy(y, Y[0, 0])
"""
        )
    ).kernel


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("T.tile.sub(y, x, v)", X - V),
        ("T.tile.mul(y, v, x)", V * X),
        ("T.tile.max(y, x, v[:, :])", np.maximum(X, V)),
        ("T.tile.clamp_max(y, x, v)", np.minimum(X, V)),
        ("T.tile.clamp(y, x, v, 1.0)", np.minimum(np.maximum(X, V), 1)),
        ("T.copy(x, y); T.tile.axpy(y, v, x)", X + V * X),
        ("T.vsub(x, v, y)", X - V),
        ("T.tile.add(y, v, v)", np.broadcast_to(2 * V, X.shape)),
        ("T.tile.exp(y, v)", np.broadcast_to(np.exp(V), X.shape)),
        ("T.copy(v, y)", np.broadcast_to(V, X.shape)),
        ("y[:, :] = x - (v + 1) * 2", X - (V + 1) * 2),
        ("y[:, :] = T.if_then_else(x > v, x, v)", np.maximum(X, V)),
        ("T.tile.broadcast(y, v)", np.broadcast_to(V, X.shape)),
    ],
)
def test_a_vector_that_is_written_as_a_column_is_one(statement: str, expected: np.ndarray) -> None:
    k = kernel(statement)
    assert check_kernel(k) == ()
    np.testing.assert_allclose(meaning(k, {"X": X, "V": V})["Y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_it_is_one_in_the_emitted_text_too() -> None:
    from tile_eg.search.compiler import lower

    done = lower(kernel("T.tile.sub(y, x, v)")).run({"X": X, "V": V})
    np.testing.assert_allclose(done["Y"], X - V, rtol=1e-6)


def test_a_vector_that_fits_both_ways_is_a_row_and_a_note_says_so() -> None:
    k = kernel("T.tile.broadcast(y, v)", "(32,)")
    (note,) = check_kernel(k)
    assert note.text == "`v` is as long as a row of `y` and as a column: it is taken for a row; axis=1: for a column"
    assert note.span is not None and note.span.line == 10
    v = V[:, 0]
    assert np.array_equal(meaning(k, {"X": X, "V": v})["Y"], np.broadcast_to(v, (32, 32)))


@pytest.mark.parametrize("axis", [0, 1])
def test_with_an_axis_there_is_no_note(axis: int) -> None:
    k = kernel(f"T.tile.broadcast(y, v, axis={axis})", "(32,)")
    v = V[:, 0]
    assert check_kernel(k) == ()
    assert np.array_equal(meaning(k, {"X": X, "V": v})["Y"], np.broadcast_to(v if axis == 0 else v[:, None], (32, 32)))


def test_there_are_two_axes() -> None:
    with pytest.raises(TileError, match="axis is 0 .* or 1"):
        kernel("T.tile.broadcast(y, v, axis=2)", "(32,)")


def test_vectors_alone_stay_vectors() -> None:
    @T.prim_func
    def twice(A: T.Tensor((32, 1), "float32"), B: T.Tensor((32, 1), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 1), "float32")
            T.copy(A, a)
            T.tile.add(a, a, a)
            T.copy(a, B)

    assert np.array_equal(meaning(tile_eg.jit(twice).kernel, {"A": V})["B"], 2 * V)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [("y[:, :] = x * (v + 1)[:, None]", X * (V + 1)), ("y[:, :] = x + T.exp(v)[None, :]", X + np.exp(V[:, 0]))],
    ids=["column", "row"],
)
def test_a_vector_that_is_computed_becomes_a_tile_where_it_stands(statement, expected):
    k = kernel(statement, "(32,)")
    np.testing.assert_allclose(meaning(k, {"X": X, "V": V[:, 0]})["Y"], expected, rtol=1e-6)


def test_other_indices_of_what_is_computed_are_told():
    with pytest.raises(TileError, match=r"a vector becomes a tile as \(x \+ y\)\[:, None\]"):
        kernel("y[:, :] = x * (v + 1)[0:16, None]", "(32,)")
