"""Elements that a statement takes alone: where a tensor's end cuts one off, the statement leaves its target as it is."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.ir.reference import run_kernel
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

TEXT = """kernel lone[N=20, BN=16](X: f32[N]) -> H: f32[8] {
  shared x: f32[BN], h: f32[8] = -100
  for b in serial(ceildiv(N, BN)) {
    x = X[b*BN]
    for i in serial(BN) { BODY }
  }
  H[0] = h
}
"""
X = np.random.default_rng(0).uniform(-2, -1, 20).astype(np.float32)


def ran(text: str, output: str = "H") -> np.ndarray:
    return lower(load_text(text).instantiate(), search=search_options(effort="none")).run({"X": X}).outputs[output]


def last(x: np.ndarray) -> float:
    found = np.float32(-100)
    for n, v in enumerate(x):
        found = found * np.float32(0.5) + v if n % 16 % 2 == 0 else found
    return float(found)


BODIES = [
    ("h[0] = max(h[0], x[i])", X.max()),
    ("h[0] = h[0] + x[i] - 5", -100 + X.sum() - 100),
    ("h[0] = x[i]", X[-1]),
    ("if i % 2 == 0 { h[0] = h[0] * 0.5 + x[i] }", last(X)),
    ("h[0] = max(h[0], select(i < 3, x[i], -50))", X[[0, 1, 2, 16, 17, 18]].max()),
    ("h[0] = h[0] + select(i < 4, 0, 1)", -100 + 24),
    ("h[0] = h[0] + select(i < 3, x[i], 1)", -100 + X[[0, 1, 2, 16, 17, 18]].sum() + 26),
    ("if b*BN + i < N { h[0] = max(h[0], x[i]) }", X.max()),
]


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize(("body", "first"), BODIES)
def test_a_statement_that_takes_an_element_beyond_the_end_means_nothing(body: str, first: float) -> None:
    text = TEXT.replace("BODY", body)
    meant = run_kernel(load_text(text).instantiate(), {"X": X})["H"]
    np.testing.assert_allclose(meant, [first, *[-100] * 7], rtol=1e-6)
    np.testing.assert_allclose(ran(text), meant, rtol=1e-6)


@pytest.mark.slow
def test_so_it_is_for_a_number_beside_a_row() -> None:
    text = TEXT.replace("BODY", "parallel j in 8 { h[j] = max(h[j], x[i] - j) }")
    np.testing.assert_allclose(ran(text), X.max() - np.arange(8), rtol=1e-6)


CHOICES = [("i < 3", [0, 1, 2, 16, 17, 18], 26), ("b*BN + i < N", range(20), 12)]


@pytest.mark.slow
@pytest.mark.parametrize(("holds", "taken", "ones"), CHOICES)
def test_of_a_choice_in_a_row_the_arm_that_exists_is_taken(holds: str, taken: list[int], ones: int) -> None:
    text = TEXT.replace("BODY", f"parallel j in 8 {{ h[j] = h[j] + select({holds}, x[i], 1) }}")
    meant = run_kernel(load_text(text).instantiate(), {"X": X})["H"]
    np.testing.assert_allclose(meant, np.full(8, -100 + X[list(taken)].sum() + ones), rtol=1e-5)
    np.testing.assert_allclose(ran(text), meant, rtol=1e-5)


@pytest.mark.slow
def test_of_a_choice_within_a_row_the_elements_that_choose_the_other_arm_are_done() -> None:
    text = TEXT.replace("BODY", "parallel j in 8 { h[j] = h[j] + select(j < 4, 1, x[i]) }")
    meant = run_kernel(load_text(text).instantiate(), {"X": X})["H"]
    np.testing.assert_allclose(meant, np.repeat([-100 + 32, -100 + X.sum()], 4), rtol=1e-5)
    np.testing.assert_allclose(ran(text), meant, rtol=1e-5)


@pytest.mark.slow
def test_a_recurrence_goes_on_to_the_end() -> None:
    text = """kernel running[N=20](X: f32[N]) -> Y: f32[N] {
  shared x: f32[32], y: f32[32] = 0
  x = X[0]
  y[0] = x[0]
  for i in serial(1, 32) { y[i] = y[i-1] + x[i] }
  Y[0] = y
}
"""
    np.testing.assert_allclose(ran(text, "Y"), np.cumsum(X), rtol=1e-5)
