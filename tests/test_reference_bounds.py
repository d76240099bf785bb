"""The bounds of a kernel's outputs follow the roundings on the way to each element, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.inputs import draw, drawn_sets
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference_bounds import Expected
from tile_eg.search.compiler import expected, meaning

TWO = """kernel two[N=64](A: f32[8, N]) -> (Y: f32[8, N], Z: bf16[8, N]) {
  grid one = 1
  shared x: f32[8, N], low: bf16[8, N]
  x = A[0, 0]
  low = exp(x)
  Z[0, 0] = low
  Y[0, 0] = exp(x) * 3.0
}
"""
SUM = """kernel total[K=512](A: f16[16, K], B: f16[K, 16]) -> C: TYPE[16, 16] {
  grid one = 1
  shared a: f16[16, K], b: f16[K, 16]
  fragment c: f32[16, 16]
  a = A[0, 0]
  b = B[0, 0]
  c = a @ b
  C[0, 0] = c
}
"""


def kernel(text: str) -> Kernel:
    return load_text(text).instantiate()


def bounds(text: str, **given: np.ndarray) -> dict[str, Expected]:
    k = kernel(text)
    return expected(k, draw([t for t in k.tensors if not t.output], "uniform", 0) | given)


def relative(e: Expected) -> np.ndarray:
    return e.allowed / np.abs(e.value.astype(np.float64))


def test_an_output_in_f32_is_as_close_as_f32_beside_a_buffer_in_bf16() -> None:
    found = bounds(TWO)
    assert relative(found["Y"]).max() < 3e-6
    assert 2.0**-9 < relative(found["Z"]).max() < 2.0**-6


def test_values_are_what_the_kernel_means() -> None:
    k = kernel(SUM.replace("TYPE", "f16"))
    inputs = draw([t for t in k.tensors if not t.output], "uniform", 0)
    assert np.array_equal(expected(k, inputs)["C"].value, meaning(k, inputs)["C"])


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_one_product_less_of_512_is_seen_in_every_row(dtype: str) -> None:
    k = kernel(SUM.replace("TYPE", dtype))
    a, b = draw([t for t in k.tensors if not t.output], "uniform", 0).values()
    found = expected(k, {"A": a, "B": b})["C"]
    less = a[:, :-1].astype(np.float32) @ b[:-1].astype(np.float32)
    assert (np.abs(less - found.value.astype(np.float32)) > found.allowed).any(axis=1).all()


def test_a_value_that_is_far_below_the_others_has_a_bound_of_its_own() -> None:
    a = np.full((8, 64), 5.0, np.float32)
    a[3, 7] = -30.0
    y = bounds(TWO, A=a)["Y"]
    assert y.allowed[3, 7] < 1e-17 < 1e-4 < y.allowed[0, 0]


def test_a_copy_is_exact() -> None:
    copy = "kernel copy(A: f32[8, 64]) -> C: f32[8, 64] {\n grid one = 1\n shared x: f32[8, 64]\n x = A[0, 0]\n C[0, 0] = x\n}\n"
    assert not bounds(copy)["C"].allowed.any()


def test_whole_numbers_are_exact_and_a_byte_may_differ_only_at_a_tie() -> None:
    text = """kernel bytes(A: i8[16, 32], B: i8[32, 16]) -> (C: i32[16, 16], D: i8[16, 16]) {
  grid one = 1
  shared a: i8[16, 32], b: i8[32, 16]
  fragment c: i32[16, 16]
  a = A[0, 0]
  b = B[0, 0]
  c = a @ b
  C[0, 0] = c
  D[0, 0] = i8(f32(c) * 0.1)
}
"""
    found = bounds(text)
    assert not found["C"].allowed.any()
    assert 0 < np.mean(found["D"].allowed > 0) < 0.3


QUOTIENT = """kernel quotient(A: f32[8, 64], B: f32[8, 64]) -> Y: f32[8, 64] {
  grid one = 1
  shared a: f32[8, 64], b: f32[8, 64]
  a = A[0, 0]
  b = B[0, 0]
  Y[0, 0] = 1.0 / (exp(a) - exp(b))
}
"""


def test_what_roundings_alone_decide_has_no_bound() -> None:
    a = np.linspace(0, 1, 512, dtype=np.float32).reshape(8, 64)
    b = a.copy()
    b[0] = a[0] + 1
    y = bounds(QUOTIENT, A=a, B=b)["Y"]
    assert np.isfinite(y.allowed[0]).all()
    assert np.isinf(y.allowed[1:]).all()


def test_inputs_that_are_nan_give_outputs_that_are_nan_for_certain() -> None:
    k = kernel(TWO)
    (drawn,) = drawn_sets(k, ["nan"], 0)
    y = (drawn.meant or {})["Y"]
    assert np.isnan(y.value).any()
    assert np.isfinite(y.allowed).all()


def test_additions_of_many_blocks_may_come_in_any_order() -> None:
    text = """kernel sums(X: f16[64, 16]) -> S: f16[16] {
  grid b = 64
  shared x: f16[16]
  x = X[b, 0]
  atomic S[0] += x
}
"""
    x = draw(kernel(text).tensors[:1], "uniform", 0)["X"]
    s = bounds(text, X=x)["S"]
    for seed in range(20):
        total = np.zeros(16, np.float16)
        for row in np.random.default_rng(seed).permutation(64):
            total = total + x[row]
        assert (np.abs(total.astype(np.float64) - s.value.astype(np.float64)) <= s.allowed).all()
    assert (s.allowed < 1.5).all()


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_running_sums_are_rounded_to_the_type_that_they_are_kept_in(dtype: str) -> None:
    text = f"""kernel sums[N=64](X: {dtype}[4, N]) -> Y: {dtype}[4, N] {{
  grid one = 1
  shared x: {dtype}[4, N]
  x = X[0, 0]
  Y[0, 0] = cumsum(x)
}}
"""
    x = draw([kernel(text).tensors[0]], "uniform", 0)["X"]
    found = bounds(text, X=x)["Y"]
    far = np.abs(found.value.astype(np.float64) - np.cumsum(x.astype(np.float64), axis=1))
    assert far.max() > 0 and (far <= found.allowed).all()
