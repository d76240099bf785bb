"""Elements that a statement takes alone: where a tensor's end cuts one off, the statement leaves its target as it is."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.checks.parts import Parts
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.reference import run_kernel, run_values
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


FILLED = TEXT.replace("h: f32[8] = -100", "h: f32[8] = -100, g: f32[8] = 0, r: f32[8], q: f32[8]")
FILL = "parallel j in 8 { r[j] = x[i] + 1 }"
KEPT = [*X, *[X[-1]] * 12]
"""What `r` was filled from in each trip: behind the end it stays as it is."""


def decayed(x: list[float]) -> float:
    found = -100.0
    for v in x:
        found = found / 2 + v + 1
    return found


STATES = [
    ("h = max(h, r)", X.max() + 1),
    ("q = r * 2\n h = max(h, q - 1)", X.max() * 2 + 1),
    ("h = h * 0.5 + r", decayed(KEPT)),
    ("h = max(h, r)\n g = g + r\n q = g + h", X.max() + 1),
    ("for m in serial(3) { h = max(h, r - m) }", X.max() + 1),
    ("parallel j in 8 { r[j] = r[j] * 2 }\n h = max(h, r)", None),
]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("body", "found"), STATES)
def test_a_row_that_trips_fill_keeps_its_value_where_a_tensor_ends(body: str, found: float | None) -> None:
    kernel = load_text(FILLED.replace("BODY", f"{FILL}\n {body}")).instantiate()
    meant = run_kernel(kernel, {"X": X})["H"]
    if found is not None:
        np.testing.assert_allclose(meant, np.full(8, found), rtol=1e-5)
    np.testing.assert_allclose(run_values(to_values(kernel), {"X": X})["H"], meant, rtol=1e-5)


@pytest.mark.slow
def test_such_a_row_is_right_in_what_comes_out() -> None:
    np.testing.assert_allclose(ran(FILLED.replace("BODY", f"{FILL}\n h = max(h, r)")), np.full(8, X.max() + 1), rtol=1e-6)


def test_rows_of_a_tile_that_are_filled_so_keep_the_value_too() -> None:
    text = FILLED.replace("q: f32[8]", "y: f32[BN, 8]").replace("H: f32[8]", "H: f32[32, 8]").replace("H[0] = h\n", "")
    text = text.replace("{ BODY }", f"{{ {FILL}\n y[i, :] = r }}\n    H[b*BN, 0] = y")
    found = run_values(to_values(load_text(text).instantiate()), {"X": X})["H"]
    np.testing.assert_allclose(found, np.repeat(np.array(KEPT)[:, None] + 1, 8, 1), rtol=1e-6)


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


def test_trips_of_a_long_loop_are_not_looked_at_one_by_one_once_all_is_written() -> None:
    kernel = load_text(FILLED.replace("BODY", f"{FILL}\n h = max(h, r)")).instantiate({"N": 100_003})
    parts = Parts()
    parts.run(kernel.body, {})
    assert parts.seen < 20


RUNNING = """kernel running[T=20, D=8](X: f32[T, D]) -> Y: f32[T, D] {
  shared x: f32[16, D], y: f32[16, D]
  fragment m: f32[D] = START
  for b in serial(ceildiv(T, 16)) {
    x = X[b*16, 0]
    for i in serial(16) {
      parallel j in D { m[j] = STEP }
      y[i, :] = m
    }
    Y[b*16, 0] = y
  }
}
"""


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("rows", [20, 33, 1])
@pytest.mark.parametrize(("start", "step"), [("-inf", "max(m[j], x[i, j])"), ("0", "0.5*m[j] + x[i, j]")])
def test_a_state_goes_on_over_rows_to_the_end(start: str, step: str, rows: int) -> None:
    x = np.random.default_rng(0).uniform(-2, -1, (rows, 8)).astype(np.float32)
    text = RUNNING.replace("START", start).replace("STEP", step)
    found = run_values(to_values(load_text(text).instantiate({"T": rows})), {"X": x})["Y"]
    decays = [sum(x[n] * 0.5 ** (r - n) for n in range(r + 1)) for r in range(rows)]
    meant = np.maximum.accumulate(x) if start == "-inf" else decays
    np.testing.assert_allclose(found, meant, rtol=1e-5)


def test_rows_of_a_tile_are_joined_to_the_end() -> None:
    text = TEXT.replace("X: f32[N]", "X: f32[N, 8]").replace("x: f32[BN]", "x: f32[BN, 8], r: f32[8]")
    text = text.replace("X[b*BN]", "X[b*BN, 0]")
    x = np.random.default_rng(0).uniform(-2, -1, (20, 8)).astype(np.float32)
    kernel = load_text(text.replace("BODY", "r = x[i, :] * 2\n h = max(h, r - 1)")).instantiate()
    np.testing.assert_allclose(run_values(to_values(kernel), {"X": x})["H"], x.max(0) * 2 - 1, rtol=1e-5)
