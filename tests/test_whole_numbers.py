"""Products of bytes, compiled and run: both layouts, any sizes, and the ways out of L0C."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Tensor
from tile_eg.report.compare import compare
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, expected, lower, meaning

pytestmark = pytest.mark.slow(but=1)

ROWS = """
kernel rows[M=100, N=90, K=200, BM=32, BN=64, BK=64](A: i8[M, K], B: i8[N, K], S: f32[N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: i8[BM, BK], b: i8[BN, BK], s: f32[BN]
  fragment c: i32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[by*BN, k*BK]
    c += a @ b.T
  }
  s = S[by*BN]
  C[bx*BM, by*BN] = f32(c) * 0.01
}
"""
COLUMNS = (
    ROWS.replace("B: i8[N, K]", "B: i8[K, N]").replace("b: i8[BN, BK]", "b: i8[BK, BN]")
    .replace("B[by*BN, k*BK]", "B[k*BK, by*BN]").replace("b.T", "b")
)  # fmt: skip
WAYS = {
    "whole": ("i32", "c"), "scaled": ("f16", "f32(c) * 0.01"), "relu": ("f16", "relu(f32(c) * 0.01)"),
    "channels": ("f16", "f32(c) * s[None, :]"), "float": ("f32", "c"), "bf16": ("bf16", "f32(c) * 0.01"),
    "exp": ("f32", "exp(f32(c) * 0.00001)"), "bytes": ("i8", "i8(f32(c) * 0.0003)"),
    "relu to bytes": ("i8", "i8(relu(f32(c) * 0.0003))"), "channels to bytes": ("i8", "i8(f32(c) * s[None, :] * 0.0003)"),
}  # fmt: skip


def text(layout: str, way: str) -> str:
    dtype, value = WAYS[way]
    return layout.replace("C: f16", f"C: {dtype}").replace("f32(c) * 0.01", value)


@lru_cache
def compiled(source: str, chip: str = "910B2", **options) -> Lowered:
    return lower(load_text(source).instantiate(), chip, search=search_options(**options))


def drawn(random: np.random.Generator, t: Tensor) -> np.ndarray:
    return random.uniform(-1, 1, t.shape).astype(t.dtype.numpy)


def check(low: Lowered, order: int | None = None) -> None:
    random = np.random.default_rng(3)
    given = {
        t.name: random.integers(-128, 128, t.shape, np.int8) if t.dtype.name == "i8" else drawn(random, t)
        for t in low.kernel.tensors
        if not t.output
    }
    found = compare(low.run(given, order=order).outputs, expected(low.kernel, given))
    assert all(c.good for c in found), found


@pytest.mark.few(7)
@pytest.mark.slow
@pytest.mark.parametrize("layout", [ROWS, COLUMNS], ids=["rows", "columns"])
@pytest.mark.parametrize("way", WAYS)
def test_products_of_bytes_are_those_of_the_source(layout: str, way: str) -> None:
    check(compiled(text(layout, way)))


@pytest.mark.parametrize("layout", [ROWS, COLUMNS], ids=["rows", "columns"])
def test_they_are_so_in_an_unfavourable_order(layout: str) -> None:
    check(compiled(layout), order=2)


@pytest.mark.parametrize("layout", [ROWS, COLUMNS], ids=["rows", "columns"])
def test_they_are_so_on_the_950(layout: str) -> None:
    check(compiled(layout, "950"))


@pytest.mark.parametrize(
    ("source", "sizes"),
    [
        (ROWS, {"M": 50, "N": 144, "K": 335, "BM": 32, "BN": 80, "BK": 112}),
        (COLUMNS, {"M": 65, "N": 161, "K": 100, "BM": 48, "BN": 96, "BK": 48}),
        (text(COLUMNS, "bytes"), {"M": 4, "N": 105, "K": 70}),
    ],
    ids=["rows that are no fractals", "columns that are no fractals", "blocks whose bytes are neighbours"],
)
def test_any_sizes_will_do(source: str, sizes: dict[str, int]) -> None:
    check(lower(load_text(source).instantiate(sizes)))


@pytest.mark.parametrize("way", ["scaled", "relu"])
def test_the_fixpipe_scales_on_its_way_out(way: str) -> None:
    low = compiled(text(ROWS, way))
    assert low.program.kernel_type == "AIC_ONLY"
    assert "QuantMode_t::DEQF16, 0x3c23d70a" in str(low.source)


@pytest.mark.few(2)
@pytest.mark.parametrize("value", ["i8(c * 40)", "i8(relu(c * 40))"])
@pytest.mark.parametrize("exact", [False, True])
def test_floats_become_bytes(value: str, exact: bool) -> None:
    floats = ROWS.replace("A: i8", "A: f16").replace("B: i8", "B: f16").replace("a: i8", "a: f16").replace("b: i8", "b: f16")
    source = floats.replace("c: i32", "c: f32").replace("C: f16", "C: i8").replace("f32(c) * 0.01", value)
    low = compiled(source, exact_math=exact)
    assert ("QF322B8_PRE, 0x400042200000" in str(low.source)) != exact
    check(low)


def test_sums_of_bytes_become_bytes_on_their_way_out() -> None:
    assert "QuantMode_t::REQ8" in str(compiled(text(ROWS, "bytes")).source)


def test_bytes_of_the_vector_cores_are_exact() -> None:
    source = "kernel k[N=4096](X: f32[N]) -> C: i8[N] { grid b = 1 shared x: f32[N] x = X[0] C[0] = i8(x) }"
    x = np.random.default_rng(5).integers(-600, 600, 4096).astype(np.float32) / 4
    low = compiled(source)
    assert np.array_equal(low.run({"X": x})["C"], meaning(low.kernel, {"X": x})["C"])


def test_a_negative_number_behind_relu_is_left_to_the_vector_cores() -> None:
    low = compiled(ROWS.replace("f32(c) * 0.01", "relu(f32(c) * -0.01)"))
    assert "DEQF16" not in str(low.source)
    check(low)


def test_bit_for_bit_the_vector_cores_scale() -> None:
    low = compiled(ROWS, exact_math=True)
    assert "DEQF16" not in str(low.source)
    check(low)


def test_sums_of_whole_numbers_go_in_parts_and_stay_exact() -> None:
    low = lower(load_text(text(ROWS, "whole")).instantiate({"M": 30, "N": 60, "K": 16384}))
    assert low.candidates[0].schedule.parts
    check(low)


def test_bytes_are_cast_on_the_vector_cores() -> None:
    source = """
kernel weights[M=20, N=96](A: i8[M, N], S: f32[N]) -> C: bf16[M, N] {
  grid bx = 1
  shared a: i8[M, N], s: f32[N]
  a = A[0, 0]
  s = S[0]
  C[0, 0] = f32(a) * s[None, :]
}
"""
    check(compiled(source))


@tile_eg.jit(out_idx=[-1])
def product(M: int, N: int, K: int):
    @T.prim_func
    def main(A: T.Tensor((M, K), "int8"), B: T.Tensor((K, N), "int8"), C: T.Tensor((M, N), "int32")):
        with T.Kernel(T.ceildiv(M, 64), T.ceildiv(N, 64)) as (bx, by):
            a = T.alloc_shared((64, 64), "int8")
            b = T.alloc_shared((64, 64), "int8")
            c = T.alloc_fragment((64, 64), "int32")
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[bx * 64, k * 64], a)
                T.copy(B[k * 64, by * 64], b)
                T.gemm(a, b, c, init=(k == 0))
            T.copy(c, C[bx * 64, by * 64])

    return main


def test_a_product_of_bytes_from_python() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(-128, 128, (100, 200), np.int8), random.integers(-128, 128, (200, 70), np.int8)
    assert np.array_equal(product(100, 70, 200)(a, b), a.astype(int) @ b.astype(int))
