"""Floats of 8 bits on the 950: products, casts, what is done with them in between, and what is refused."""

from __future__ import annotations

from functools import lru_cache

import ml_dtypes
import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.report.compare import compare
from tile_eg.search.compiler import Lowered, expected, lower

TYPES = {"f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "f8e5m2": np.dtype(ml_dtypes.float8_e5m2)}

GEMM = """
kernel gemm[M=100, N=96, K=160, BM=64, BN=64, BK=64](A: f8e4m3[M, K], B: f8e4m3[K, N]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared   a: f8e4m3[BM, BK], b: f8e4m3[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  C[bx*BM, by*BN] = c
}
"""
QUANTISED = """
function quantised(x) = f8e4m3(x * 4)
kernel chain[M=70, N=96, K=100, BM=64, BK=64](A: f16[M, K], B: f8e4m3[K, N]) -> (C: f8e5m2[M, N], S: f32[M]) {
  grid bx = ceildiv(M, BM)
  shared   a: f16[BM, BK], q: f8e4m3[BM, BK], b: f8e4m3[BK, N], z: f8e5m2[BM, N]
  fragment c: f32[BM, N] = 0, s: f32[BM]
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    q = quantised(a)
    b = B[k*BK, 0]
    c += q @ b
  }
  z = c / 4
  C[bx*BM, 0] = z
  s = rowsum(f32(z))
  S[bx*BM] = s
}
"""
TENSORS = """
kernel scaled[M=50, N=40, K=96](A: f8e4m3[M, K], B: f8e5m2[K, N], s: f32[M]) -> C: f16[M, N] {
  C = (A @ B) * s[:, None] + 1
}
"""
CASTS = """
kernel casts[N=256](X: f32[2, N], A: f8e4m3[2, N], B: f8e5m2[2, N]) -> (
    P: f8e4m3[2, N], Q: f8e5m2[2, N], F: f32[2, N], G: f16[2, N]) {
  grid bx = 1
  shared x: f32[2, N], a: f8e4m3[2, N], b: f8e5m2[2, N]
  x = X[0, 0]
  a = A[0, 0]
  b = B[0, 0]
  P[0, 0] = f8e4m3(x)
  Q[0, 0] = f8e5m2(x)
  F[0, 0] = f32(a)
  G[0, 0] = f16(b)
}
"""
ARITHMETIC = """
kernel filled[M=20, N=96](A: f8e4m3[M, N], B: f8e4m3[M, N]) -> (C: f8e4m3[M, N], D: f16[M]) {
  grid bx = 2
  shared a: f8e4m3[10, N], b: f8e4m3[10, N], c: f8e4m3[10, N] = 1.5
  fragment m: f16[10]
  a = A[bx*10, 0]
  b = B[bx*10, 0]
  parallel (i, j) in (10, N) { c[i, j] = c[i, j] + max(a[i, j], b[i, j]) * 2 }
  C[bx*10, 0] = c
  m = rowmax(a)
  D[bx*10] = m
}
"""


@lru_cache
def compiled(source: str) -> Lowered:
    return lower(load_text(source).instantiate(), "950")


def drawn(low: Lowered) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    types = {t.name: TYPES.get(t.dtype.name, t.dtype.numpy) for t in low.kernel.tensors}
    return {t.name: random.uniform(-2, 2, t.shape).astype(types[t.name]) for t in low.kernel.tensors if not t.output}


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("source", [GEMM, GEMM.replace("B: f8e4m3", "B: f8e5m2").replace("b: f8e4m3", "b: f8e5m2"), QUANTISED,
                                    TENSORS, ARITHMETIC])  # fmt: skip
def test_kernels_with_floats_of_8_bits_compute_what_they_mean(source: str) -> None:
    low = compiled(source)
    arrays = drawn(low)
    run = low.run(arrays)
    assert not run.findings
    assert all(c.good for c in compare(run.outputs, expected(low.kernel, arrays)))


@pytest.mark.slow
def test_a_product_adds_up_in_f32_and_its_operands_may_differ() -> None:
    low = compiled(GEMM.replace("B: f8e4m3", "B: f8e5m2").replace("b: f8e4m3", "b: f8e5m2"))
    arrays = drawn(low)
    exact = arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64)
    assert np.abs(low.run(arrays).outputs["C"] - exact).max() < 1e-4
    assert "LocalTensor<fp8_e5m2_t> c_l0b" in str(low.source) and "LocalTensor<fp8_e4m3fn_t> c_l0a" in str(low.source)


@pytest.mark.slow
def test_casts_round_to_even_saturate_and_hold_every_number() -> None:
    every = np.arange(256, dtype=np.uint8)
    ends = [448, 464, 465, 1e9, np.inf, -np.inf, np.nan, 57344, -61440, 61441]
    odd = np.array([*ends, 0.0, -0.0, 2**-10, 3 * 2**-11, 2**-17, 1e-30])
    near = np.nan_to_num(every.view(TYPES["f8e4m3"]).astype(np.float32)) * 1.0625
    x = np.stack([np.resize(odd, 256).astype(np.float32), near])
    arrays = {"X": x, "A": np.stack([every, every]).view(TYPES["f8e4m3"]), "B": np.stack([every, every]).view(TYPES["f8e5m2"])}
    out = compiled(CASTS).run(arrays).outputs
    for name, dtype in (("P", TYPES["f8e4m3"]), ("Q", TYPES["f8e5m2"])):
        most = float(ml_dtypes.finfo(dtype).max)
        meant = np.clip(np.nan_to_num(x, nan=0.0), -most, most).astype(dtype)
        assert (out[name].view(np.uint8) == meant.view(np.uint8)).all(), name
    np.testing.assert_array_equal(out["F"], arrays["A"].astype(np.float32))
    np.testing.assert_array_equal(out["G"], arrays["B"].astype(np.float32).astype(np.float16))


def kept(dtype: str, chip: str):
    @tile_eg.jit(out_idx=[-1], chip=chip)
    def build(M, N, K):
        @T.prim_func
        def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_L1((M, K), dtype)
                b = T.alloc_L1((K, N), dtype)
                c = T.alloc_L0C((M, N), "float")
                with T.Scope("C"):
                    T.copy(A, a)
                    T.copy(B, b)
                    T.barrier_all()
                    T.gemm_v0(a, b, c, init=True)
                    T.barrier_all()
                    T.copy(c, C)

        return main

    return build


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float8_e4m3", "e5m2_float8"])
def test_a_kept_kernel_multiplies_them(dtype: str) -> None:
    random = np.random.default_rng(4)
    of = TYPES["f8e5m2" if "e5m2" in dtype else "f8e4m3"]
    a, b = random.uniform(-2, 2, (32, 96)).astype(of), random.uniform(-2, 2, (96, 64)).astype(of)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(kept(dtype, "950")(32, 64, 96)(a, b) - exact).max() < 1e-4


@pytest.mark.parametrize("source", [GEMM, TENSORS, CASTS])
def test_a_chip_without_them_says_so(source: str) -> None:
    with pytest.raises(TileError) as caught:
        lower(load_text(source).instantiate(), "910B2")
    assert "is a float of 8 bits, and 910B2 has none" in str(caught.value)
    assert 'chip="950" in Python' in str(caught.value) and "1 |" not in str(caught.value)[:40]


def test_a_kept_kernel_for_a_chip_without_them_says_so() -> None:
    with pytest.raises(TileError, match="is a float of 8 bits, and 910B2 has none"):
        kept("float8_e4m3", "910B2")(32, 64, 96).planned()


REFUSED = [
    ("mxfp8", "two tensors"), ("float4_e2m1", "numbers of 4 bits are not there"), ("float4_e3m0", "no float of 4 bits"),
    ("float8_e3m4", "no float of 8 bits has this"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "said"), REFUSED)
def test_other_small_floats_are_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(TileError, match=said):
        kept(name, "950")(32, 64, 96)


@tile_eg.jit(out_idx=[-1], platform="A5")
def scaled_blocks(M, N, K):  # type: ignore[no-untyped-def]  # noqa: N803
    """A product of floats of 8 bits of which each 32 along K share a scale, a power of two."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float8_e4m3"), B: T.Tensor((N, K), "float8_e4m3"),
        SA: T.Tensor((K // 32, M), "uint8"), SB: T.Tensor((K // 32, N), "uint8"), C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 64)) as by:
            a = T.alloc_shared((M, 32), "float8_e4m3")
            b = T.alloc_shared((64, 32), "float8_e4m3")
            sa, sb = T.alloc_shared((M,), "uint8"), T.alloc_shared((64,), "uint8")
            p, c = T.alloc_fragment((M, 64), "float32"), T.alloc_fragment((M, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(K // 32):
                T.copy(A[0, k * 32], a)
                T.copy(B[by * 64, k * 32], b)
                T.copy(SA[k, 0], sa)
                T.copy(SB[k, by * 64], sb)
                T.gemm(a, b, p, transpose_B=True, init=True)
                for i, j in T.Parallel(M, 64):
                    scale = T.exp2(T.cast(sa[i], "float32") - 127) * T.exp2(T.cast(sb[j], "float32") - 127)
                    c[i, j] += p[i, j] * scale
            T.copy(c, C[0, by * 64])

    return main


@pytest.mark.slow
def test_blocks_with_scales_are_bytes_beside_floats_of_8_bits() -> None:
    random, (m, n, k) = np.random.default_rng(0), (32, 128, 96)
    a, b = (random.uniform(-4, 4, (rows, k)).astype(TYPES["f8e4m3"]) for rows in (m, n))
    sa, sb = (random.integers(120, 132, (k // 32, rows), dtype=np.uint8) for rows in (m, n))
    x, y = (v.astype(np.float32) * np.repeat(2.0 ** (s.T.astype(np.float32) - 127), 32, axis=1) for v, s in ((a, sa), (b, sb)))
    np.testing.assert_allclose(scaled_blocks(m, n, k)(a, b, sa, sb), x @ y.T, rtol=1e-3, atol=1e-2)
