"""`G[c]`, an element of a tensor of fewer dimensions, beside a tile in `.tile` text: one number, as that of a buffer is."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.ir.reference import run_kernel
from tile_eg.search.compiler import lower

X = np.random.default_rng(0).uniform(-1, 1, (20, 64)).astype(np.float32)
G = np.arange(1, 9, dtype=np.float32)
HEAD = "kernel k(X: f32[20, 64], G: f32[8]) -> Y: f32[20, 64] {{ grid b = 2 shared x: f32[16, 64] x = X[b*16, 0] "
TEXT = HEAD + "{body} Y[b*16, 0] = x }}"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("for c in serial(3) { x = x * G[c] }", X * 6),
        ("x = x * (G[1] + G[2]) - exp(G[0])", X * 5 - np.exp(np.float32(1))),
        ("x = select(x > G[0] - 1, G[3], x)", np.where(X > 0, 4, X)),
    ],
)
def test_an_element_of_a_vector_is_a_number_beside_a_tile(body: str, wanted: np.ndarray) -> None:
    kernel = load_text(TEXT.format(body=body)).instantiate()
    np.testing.assert_allclose(run_kernel(kernel, {"X": X, "G": G})["Y"], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_it_is_emitted_as_such() -> None:
    kernel = load_text(TEXT.format(body="x = x * G[b + 1]")).instantiate()
    wanted = X * np.where(np.arange(20) < 16, 2, 3)[:, None]
    np.testing.assert_allclose(lower(kernel).run({"X": X, "G": G})["Y"], wanted, rtol=1e-6)
