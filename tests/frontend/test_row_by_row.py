"""Loops over rows and elements that are done one after the other, and choices of them, in `.tile` text."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.values import made_of, reachable
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

TEXT = """kernel rows[M=8, N=16](X: f32[M, N]) -> (Y: f32[M, N], W: f32[M]) {
  shared x: f32[M, N], y: f32[M, N] = 0, m: f32[M] = 0, t: f32[N] = 0, l: f32[M] = 0
  x = X[0, 0]
  l = rowmax(x)
  BODY
  Y[0, 0] = y
  W[0] = m
}
"""
X = np.random.default_rng(0).uniform(-1, 1, (8, 16)).astype(np.float32)
MAX, NOTHING = X.max(1), np.zeros_like(X)


def rows(of) -> np.ndarray:
    return np.array([of(i) for i in range(8)], np.float32)


def columns(of) -> np.ndarray:
    return np.array([[of(i, j) for j in range(16)] for i in range(8)], np.float32)


MEANINGS = [
    ("for i in serial(M) { y[i, :] = x[i, :] + y[0, :] }", columns(lambda i, j: X[i, j] + X[0, j] * (i > 0)), MAX * 0),
    ("m = l  for i in serial(1, M) { m[i] = max(m[i], m[i - 1]) }", NOTHING, np.maximum.accumulate(MAX)),
    ("m = l  for i in serial(M - 1) { m[i] = m[i + 1] }", NOTHING, np.append(MAX[1:], MAX[7])),
    ("for i in serial(M - 1) { m[i] = 1 }", NOTHING, np.append(np.ones(7), 0)),
    ("for i in serial(M) { m[0] = m[0] + l[i]  l[i] = 1 }", NOTHING, np.append(MAX.sum(), np.zeros(7))),
    ("for i in serial(M) { m[i] = 2  t = t + x[i, :] }  for i in serial(M) { y[i, :] = t }",
     np.tile(X.sum(0), (8, 1)), np.full(8, 2)),
    ("for i in serial(M) { t = x[i, :] }  for i in serial(M) { y[i, :] = t }", np.tile(X[7], (8, 1)), MAX * 0),
    ("parallel (i, j) in (M, N) { y[i, j] = x[i, 3] }", np.tile(X[:, 3:4], (1, 16)), MAX * 0),
    ("parallel (i, j) in (M, N) { y[i, j] = x[5, 3] }", np.full((8, 16), X[5, 3]), MAX * 0),
    ("parallel j in N { y[2, j] = x[1, j] }", columns(lambda i, j: X[1, j] * (i == 2)), MAX * 0),
    ("parallel i in M { y[i, 4] = l[i] }", columns(lambda i, j: MAX[i] * (j == 4)), MAX * 0),
    ("m = l  for i in serial(M) { if i > 0 { m[i] = m[i-1] } }", NOTHING, np.full(8, MAX[0])),
    ("for i in serial(M) { if i > 0 { y[i, :] = x[i-1, :] } }", columns(lambda i, j: X[i - 1, j] * (i > 0)), MAX * 0),
    ("for i in serial(M) { for j in serial(N) { if j < i { y[i, j] = 3 } } }", columns(lambda i, j: 3 * (j < i)), MAX * 0),
    ("for i in serial(M) { if i == 0 { m[i] = 1 } else { m[i] = 2 } }", NOTHING, rows(lambda i: 1 + (i > 0))),
    ("for k in serial(5) { if k == 3 { y = x  m = m + 1 } else { m = m * 2 + k } }", X, np.full(8, 14)),
    ("parallel (i, j) in (M, M) { y[i, j] = x[i, j] }", columns(lambda i, j: X[i, j] * (j < 8)), MAX * 0),
    ("parallel (i, j) in (M, N) { y[i, j] = x[i, j // 2] }", columns(lambda i, j: X[i, j // 2]), MAX * 0),
    ("parallel (i, j) in (M, N) { y[i, j] = select(i * j < 9, x[i, j], 0) }",
     columns(lambda i, j: X[i, j] * (i * j < 9)), MAX * 0),
    ("parallel (i, j) in (M, N) { y[i, j] = select(4000000 * i < j, x[i, j], 0) }",
     columns(lambda i, j: X[i, j] * (4000000 * i < j)), MAX * 0),
    ("parallel (i, j) in (M, N) { y[i, j] = x[i, j] + i * j }", columns(lambda i, j: X[i, j] + i * j), MAX * 0),
    ("parallel (i, j) in (M, N) { y[i, j] = x[i, j] + i % 4 }", columns(lambda i, j: X[i, j] + i % 4), MAX * 0),
    ("parallel i in 4 { m[i] = l[i + 4] }", NOTHING, np.append(MAX[4:], np.zeros(4))),
    ("parallel i in 4 { m[i] = l[2*i] }", NOTHING, np.append(MAX[::2], np.zeros(4))),
    ("parallel (i, j) in (M, M) { y[i, j + 8] = x[7 - i, 2*j] }",
     columns(lambda i, j: X[7 - i, 2 * j - 16] if j > 7 else 0), MAX * 0),
    ("x = x * l[:, None] parallel (i, j) in (4, N) { y[i, j] = x[2*i, j] }",
     columns(lambda i, j: X[2 * i, j] * MAX[2 * i] if i < 4 else 0), MAX * 0),
    ("y[3, :] = x[2, :]  m[1] = l[6]  y[:, 2] = l", columns(lambda i, j: MAX[i] if j == 2 else X[2, j] * (i == 3)),
     rows(lambda i: MAX[6] * (i == 1))),
]  # fmt: skip


@pytest.mark.few(13)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("body", "y", "m"), MEANINGS, ids=[n[0] for n in MEANINGS])
def test_the_statements_mean_what_they_say_in_their_order(body: str, y: np.ndarray, m: np.ndarray) -> None:
    low = lower(load_text(TEXT.replace("BODY", body)).instantiate(), search=search_options(effort="none"))
    found = low.run({"X": X}).outputs
    np.testing.assert_allclose(found["Y"], y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["W"], m, rtol=1e-5, atol=1e-6)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("bits", ["f16", "bf16", "i16", "i8"])
def test_elements_of_other_types_are_taken_out_whole(bits: str) -> None:
    text = """kernel k(X: i32[16]) -> Y: i32[16] {
      shared x: i32[16], s: BITS[16], d: BITS[16]
      x = X[0]  s = BITS(x)
      for i in serial(16) { d[i] = s[15 - i] }
      Y[0] = i32(d) }""".replace("BITS", bits)
    x = np.random.default_rng(1).integers(-100, 100, 16).astype(np.int32)
    if bits == "i8":
        text = text.replace("s = i8(x)", "s = i8(f32(x))").replace("i32(d)", "i32(f32(d))")
    np.testing.assert_array_equal(lower(load_text(text).instantiate()).run({"X": x}).outputs["Y"], x[::-1])


@pytest.mark.slow
def test_a_loop_over_as_many_rows_as_a_block_says() -> None:
    text = """kernel k(X: f32[8, 16]) -> Y: f32[4, 16] {
      grid bx = 4
      shared x: f32[8, 16], t: f32[16] = 1
      x = X[0, 0]
      for i in serial(2*bx) { x[i, :] = x[i, :] * 2 }
      for i in serial(bx) { if i == 0 { t = 0 }  t = t + x[i, :] }
      Y[bx, 0:16] = t + x[7, :] }"""
    found = lower(load_text(text).instantiate()).run({"X": X}).outputs["Y"]
    wanted = [(X[:b].sum(0) * 2 if b else 1) + X[7] for b in range(4)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_columns_are_gathered_one_by_one() -> None:
    text = """kernel f(A: f16[16, 16], i: i32[16]) -> C: f16[16, 16] {
      shared x: f16[16, 16]
      parallel (r, c) in (16, 16) { x[r, c] = A[r, i[c]] }
      C[0, 0] = x }"""
    a, i = X.repeat(2, 0).astype(np.float16), np.random.default_rng(1).integers(0, 16, 16).astype(np.int32)
    np.testing.assert_array_equal(lower(load_text(text).instantiate()).run({"A": a, "i": i}).outputs["C"], a[:, i])


COMPUTED_BEFORE = """
kernel solved[C=16](A: f32[C, C], G: f32[C]) -> U: f32[C, C] {
  grid bx = 1
  fragment a: f32[C, C], u: f32[C, C], g: f32[C], r: f32[C]
  a = A[0, 0]
  g = G[0]
  parallel (i, j) in (C, C) { a[i, j] = select(i > j, a[i, j] * exp(g[i] - g[j]), 0) }
  parallel (i, j) in (C, C) { u[i, j] = select(i == j, 1, 0) }
  for i in serial(1, C) {
    r = a[i, :]
    u[i, :] = u[i, :] - colsum(u * r[:, None])
  }
  U[0, 0] = u
}
"""


def test_rows_of_a_tile_that_was_computed_before_a_loop_are_not_computed_again_in_it() -> None:
    values = to_values(load_text(COMPUTED_BEFORE).instantiate())
    (loop,) = (t for t in reachable(values) if t.op == "loop")
    assert not [t for t in made_of(loop.args[2][0][1]) if t.op == "nest" and t.rows == 1]


@pytest.mark.slow
def test_rows_of_a_large_tile_are_computed_one_by_one_as_all_of_it_may_not_fit() -> None:
    text = """kernel k[M=128, N=1024](X: f32[M, N], A: f32[M, N]) -> Y: f32[N] {
      grid bx = 1
      shared x: f32[M, N], a: f32[M, N], t: f32[N] = 0
      x = X[0, 0]
      a = A[0, 0]
      x = exp(x) * a
      for i in serial(M) { t = t * 0.5 + x[i, :] }
      Y[0] = t }"""
    assert lower(load_text(text).instantiate(), search=search_options(effort="none")).program.blocks == 1
