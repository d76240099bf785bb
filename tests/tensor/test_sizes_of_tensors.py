"""Sizes of tensors that a call tells: none, one, primes; element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.jit import TileKernel

M, K, N = T.symbolic("M"), T.symbolic("K"), T.symbolic("N")


@tile_eg.jit
def product(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16")) -> T.Tensor((M, N), "float32"):
    return A @ B


@tile_eg.jit
def centred(X: T.Tensor((M, N), "float32")) -> Any:
    return X - T.mean(X, axis=-1, keepdims=True)


def uniform(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(0, 4, 4), (8, 0, 8), (1, 1, 1), (5, 1, 7), (1, 64, 1), (17, 33, 70)])
def test_a_product_at_the_sizes_of_a_call(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = uniform(m, k).astype(np.float16), uniform(k, n).astype(np.float16)
    np.testing.assert_allclose(product(a, b), a.astype(np.float32) @ b.astype(np.float32), atol=1e-4)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("shape", [(0, 8), (8, 0), (1, 1), (7, 13), (1, 300), (300, 1)])
def test_rows_at_the_sizes_of_a_call(shape: tuple[int, int]) -> None:
    x = uniform(*shape)
    want = x - x.mean(-1, keepdims=True) if x.size else x
    np.testing.assert_allclose(centred(x), want, atol=1e-6)


def test_a_maximum_of_nothing_is_refused() -> None:
    with pytest.raises(TileError, match="there is no `max` of no elements"):
        TileKernel(load_text("kernel k[M=4, N: dyn](X: f32[M, N]) -> Y: f32[M] { Y = max(X, axis=1) }"))(uniform(4, 0))


WHOLE = np.arange(-200, 280, dtype=np.int32).reshape(20, 24)
HEAD = "kernel k[M=20, N=24](X: {0}[M, N], Z: f32[M, N]) -> Y: {1}[M, N] {{ Y = {2} }}"
TYPES = [
    ("i32", "i32", "max(X * 2 + 1, 0)", np.maximum(WHOLE * 2 + 1, 0), 0),
    ("i32", "f32", "X * Z + X / 2", WHOLE * uniform(20, 24) + WHOLE / 2, 1e-4),
    ("i32", "f32", "X * 0.5 + exp(0.1 * arange(N))", WHOLE * 0.5 + np.exp(0.1 * np.arange(24)), 1e-4),
    ("i32", "i32", "arange(M)[:, None] * 2 - arange(N)", np.arange(20)[:, None] * 2 - np.arange(24), 0),
    ("bf16", "f32", "sqrt(abs(X))", np.sqrt(abs(WHOLE.astype(ml_dtypes.bfloat16).astype(np.float32))), 1e-4),
    ("f32", "f32", "where(isnan(X), 0, X)", WHOLE, 0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("of", "to", "expression", "want", "error"), TYPES)
def test_element_types(of: str, to: str, expression: str, want: np.ndarray, error: float) -> None:
    kernel = TileKernel(load_text(HEAD.format(of, to, expression)))
    x = WHOLE.astype({"i32": np.int32, "bf16": ml_dtypes.bfloat16, "f32": np.float32}[of])
    got = kernel(x, uniform(20, 24))
    np.testing.assert_allclose(got.astype(np.float64), want, atol=error)


@tile_eg.jit(effort="none")
def below_and_all(X: T.Tensor((M, 64), "float32")):
    return T.where(T.arange(64)[:, None] <= T.arange(M), X.T, 0), X * 1.0


@pytest.mark.slow
def test_positions_that_are_made_once_are_there_for_the_masks_of_every_tile() -> None:
    """The first tile of a block needs no mask, a later one does."""
    x = uniform(40, 64)
    below, same = below_and_all(x)
    np.testing.assert_array_equal(below, np.triu(x.T))
    np.testing.assert_array_equal(same, x)


@tile_eg.jit(effort="none")
def chosen(
    X: T.Tensor((20, 24), "float32"), B: T.Tensor((24,), "bool")
) -> tuple[T.Tensor((20, 24), "bool"), T.Tensor((20,), "float32")]:
    return ~B & (X > 0), T.where(B, X, B + 0.5).amax(-1)


@pytest.mark.slow
def test_whole_tensors_of_bools() -> None:
    x, b = uniform(20, 24), uniform(24) > 0
    at, most = chosen(x, b)
    assert at.dtype == np.bool_
    np.testing.assert_array_equal(at, ~b & (x > 0))
    np.testing.assert_array_equal(most, np.where(b, x, np.float32(0.5)).max(-1))


@pytest.mark.slow
def test_what_a_whole_tensor_of_bools_is_given_is_whether_it_is_not_0() -> None:
    """A cast of 0.25 would be 0."""
    x = np.array([0, 0.25, -3, 300] * 4, np.float32)
    got = TileKernel(load_text("kernel k[M=16](X: f32[M]) -> Y: bool[M] { Y = X }"))(x)
    np.testing.assert_array_equal(got, x != 0)


def test_types_may_be_numpys_classes() -> None:
    @tile_eg.jit(effort="none")
    def mean(X: T.Tensor((4, 16), np.float32)) -> T.Tensor((4, 16), np.bool_):  # type: ignore[valid-type]
        return (X - X.sum() / X.size).astype(np.float16) > 0

    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    np.testing.assert_array_equal(mean(x), x > x.mean())
