"""Shifts of whole numbers by elements, in both languages."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower, meaning

rng = np.random.default_rng(0)
TEXT = """
kernel k[N=70, B=64](X: {0}[N], S: {1}[N]) -> Y: {0}[N] {{
  grid b = ceildiv(N, B)
  shared x: {0}[B], s: {1}[B]
  x = X[b*B]
  s = S[b*B]
  parallel i in B {{ x[i] = {2} }}
  Y[b*B] = x
}}
"""


def numbers(x: str, s: str) -> dict[str, np.ndarray]:
    bits = np.iinfo(x).bits
    low = 0 if x.startswith("u") else -100
    return {"X": rng.integers(low, 100, 70).astype(x), "S": rng.integers(0, bits, 70).astype(s)}


@pytest.mark.parametrize(("x", "s", "value"), [
    ("i32", "i32", "x[i] << s[i]"), ("u16", "u16", "x[i] >> s[i]"), ("i16", "i16", "x[i] >> s[i]"), ("i32", "u8", "x[i] << s[i]"),
])  # fmt: skip
def test_each_element_is_shifted_by_its_own(x, s, value):
    names = {"i": "int", "u": "uint"}
    kernel = load_text(TEXT.format(x, s, value)).instantiate()
    given = numbers(names[x[0]] + x[1:], names[s[0]] + s[1:])
    places = given["S"].astype(given["X"].dtype)
    want = given["X"] << places if "<<" in value else given["X"] >> places
    np.testing.assert_array_equal(meaning(kernel, given)["Y"], want)


@pytest.mark.slow
def test_it_runs():
    kernel = load_text(TEXT.format("i32", "i32", "(1 << s[i]) + (x[i] >> s[i])")).instantiate()
    given = numbers("int32", "int32")
    np.testing.assert_array_equal(lower(kernel).run(given)["Y"], (1 << given["S"]) + (given["X"] >> given["S"]))


def test_the_word_of_a_tile_takes_a_tile():
    text = """
@T.prim_func
def f(X: T.Tensor((64,), "int32"), S: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1) as b:
        x = T.alloc_shared((64,), "int32")
        s = T.alloc_shared((64,), "int32")
        T.copy(X, x)
        T.copy(S, s)
        T.tile.bitwise_lshift(x, x, s)
        T.copy(x, Y)
"""
    kernel = tile_eg.compile(prim_func(text), out_idx=[-1]).kernel
    x, s = rng.integers(-9, 9, 64).astype(np.int32), rng.integers(0, 32, 64).astype(np.int32)
    np.testing.assert_array_equal(meaning(kernel, {"X": x, "S": s})["Y"], x << s)
