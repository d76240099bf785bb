"""Sums and extremes of whole numbers in kernels of whole tensors are exact, and wrap as 32 bits do."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(-(2**30), 2**30, (40, 100)).astype(np.int32)
S = RANDOM.integers(-50, 50, (40, 100)).astype(np.int32)
LONG = RANDOM.integers(-(2**28), 2**28, (4, 4100)).astype(np.int32)
V = RANDOM.integers(-128, 128, 100).astype(np.int8)


@pytest.mark.few(3)
@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        ("k(X: i32[40, 100]) -> Y: i32[40] { Y = sum(X, -1) }", X, X.sum(-1, dtype=np.int32)),
        ("k(X: i32[40, 100]) -> Y: i32[100] { Y = sum(X * X, 0) }", S, (S * S).sum(0, dtype=np.int32)),
        ("k(X: i32[40, 100]) -> Y: i32[40, 100] { Y = X - rowmin(X)[:, None] }", S, S - S.min(-1, keepdims=True)),
        ("k(X: i16[40, 100]) -> Y: i16[40] { Y = rowmax(X) }", S.astype(np.int16), S.astype(np.int16).max(-1)),
        ("k(X: f32[40, 100]) -> Y: i32[40] { Y = sum(where(X > 0, 1, 0), -1) }", S.astype(np.float32), (S > 0).sum(-1)),
        ("k(X: i32[4, 4100]) -> Y: i32[4] { Y = rowmax(X) }", LONG, LONG.max(-1)),
        ("k(X: i8[40, 100]) -> Y: i8[40] { Y = rowmax(X) }", S.astype(np.int8), S.max(-1)),
        ("k(X: i16[40, 100]) -> Y: i32[40] { Y = sum(X, -1) }", S.astype(np.int16), S.sum(-1)),
    ],
)
def test_they_are_what_numpy_computes(text: str, x: np.ndarray, expected: np.ndarray) -> None:
    run = lower(load_text(f"kernel {text}").instantiate()).run({"X": x})
    assert not run.findings and (run.outputs["Y"] == expected).all()


@pytest.mark.slow
def test_a_product_of_bytes_with_a_vector_is_exact() -> None:
    text = "kernel k(X: i8[40, 100], V: i8[100]) -> Y: i32[40] { Y = X @ V }"
    run = lower(load_text(text).instantiate()).run({"X": S.astype(np.int8), "V": V})
    assert not run.findings and (run.outputs["Y"] == S @ V.astype(np.int32)).all()
