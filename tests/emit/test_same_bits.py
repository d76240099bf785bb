"""Whole numbers without and with a sign have the same bits: what reads them as the others reads them where they lie."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tile_eg.ir.program import Instr, walk
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning

HASH = """
kernel hash[M=40, N=70, BM=16, BN=64](X: i32[M, N]) -> (Y: f32[M, N], Z: u32[M, N]) {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared x: i32[BM, BN]
  fragment h: u32[BM, BN], y: f32[BM, BN]
  x = X[bx*BM, by*BN]
  h = u32(x)
  h = (h ^ (h >> 16)) * 2146121005
  y = f32(i32(h >> 8)) * (1 / 16777216)
  Y[bx*BM, by*BN] = y
  Z[bx*BM, by*BN] = h
}
"""
STORED = """
kernel stored[M=33, N=64](X: i32[M, N]) -> Y: u32[M, N] {
  grid bx = ceildiv(M, 16)
  shared x: i32[16, N]
  x = X[bx*16, 0]
  Y[bx*16, 0] = u32(x)
}
"""
GOES_ON = """
kernel goes_on[M=32, N=64, T=5](X: i32[T, M, N]) -> Y: i32[M, N] {
  grid bx = M // 16
  shared x: i32[16, N]
  fragment h: u32[16, N] = 0
  for t in serial(T) {
    x = X[t, bx*16, 0]
    h = u32(x) + (h >> 3)
  }
  Y[bx*16, 0] = i32(h)
}
"""
PRODUCT = """
kernel product[M=32, N=64, K=32, T=3](A: i8[T, M, K], B: i8[N, K]) -> C: u32[T, M, N] {
  grid bx = 1
  shared a: i8[M, K], b: i8[N, K]
  fragment c: i32[M, N]
  b = B[0, 0]
  for t in serial(T) {
    a = A[t, 0, 0]
    c = a @ b.T
    C[t, 0, 0] = u32(c) >> 3
  }
}
"""
OPERAND = """
kernel operand[M=32, N=64, K=64](A: u8[M, K], B: i8[N, K]) -> C: i32[M, N] {
  grid bx = 1
  shared a: u8[M, K], b: i8[N, K]
  fragment c: i32[M, N]
  a = A[0, 0]
  b = B[0, 0]
  c = i8(a) @ b.T
  C[0, 0] = c
}
"""
TEXTS = {"hash": HASH, "stored": STORED, "goes_on": GOES_ON}


@cache
def of_bytes(text: str, chip: str) -> Lowered:
    return lower(kernel(text), chip)


@cache
def lowered(name: str, *without: str) -> Lowered:
    return lower(kernel(TEXTS[name]), search=search_options(without=without))


def casts(made: Lowered) -> int:
    """The casts between whole numbers."""
    types = {b.name: b.dtype for b in made.program.buffers}
    found = [n for n in walk(made.program.vector) if isinstance(n, Instr) and n.op == "vcast"]
    return sum(types[n.dst.buffer].whole and types[n.srcs[0].buffer].whole for n in found)  # type: ignore[union-attr]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", TEXTS)
def test_nothing_is_done_where_the_sign_is_another(name: str) -> None:
    assert casts(lowered(name)) == 0


@pytest.mark.slow
def test_without_the_rule_they_are_copied() -> None:
    assert casts(lowered("hash", "v-same-bits")) == 2


def test_both_names_of_a_buffer_are_declared_at_one_place() -> None:
    made = lowered("hash")
    places: dict[tuple[int, ...], set[str]] = {}
    for b in made.program.buffers:
        places.setdefault(b.addresses, set()).add(str(b.dtype))
    assert {"i32", "u32"} in places.values()


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("how", [{}, {"order": 1}])
def test_the_numbers_are_those_that_are_meant(name: str, how: dict[str, int]) -> None:
    made = lowered(name)
    random = np.random.default_rng(0)
    arrays = {t.name: random.integers(-(2**31), 2**31, t.shape).astype(np.int32) for t in made.kernel.tensors if not t.output}
    run = made.run(arrays, **how)
    for name, want in meaning(made.kernel, arrays).items():
        np.testing.assert_array_equal(run.outputs[name], want)


@pytest.mark.few(4)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("order", [None, 1])
@pytest.mark.parametrize("chip", ["910B2", "950"])
@pytest.mark.parametrize("text", [PRODUCT, OPERAND], ids=["a result", "an operand"])
def test_the_cores_meet_in_a_buffer_that_one_of_them_reads_as_another_type(text: str, chip: str, order: int | None) -> None:
    made = of_bytes(text, chip)
    random = np.random.default_rng(0)
    inputs = [t for t in made.kernel.tensors if not t.output]
    drawn = {t.name: random.integers(0, 256, t.shape).astype(np.uint8).view(t.dtype.numpy) for t in inputs}
    run = made.run(drawn, order=order)
    np.testing.assert_array_equal(run["C"], meaning(made.kernel, drawn)["C"])
