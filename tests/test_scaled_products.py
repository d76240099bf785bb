"""Products with scales on the 950 (MXFP8, MXFP4): what they compute, in both languages, and what is refused."""

from __future__ import annotations

from functools import lru_cache

import ml_dtypes
import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.inputs import drawn_sets
from tile_eg.ir.program.parser import parse_program
from tile_eg.report.compare import compare
from tile_eg.search.compiler import Lowered, expected, lower

E8M0 = ml_dtypes.float8_e8m0fnu
GEMM = """
kernel gemm[M=100, N=72, K=320, BM=64, BN=64, BK=128](
    A: f8e4m3[M, K], SA: e8m0[M, K // 32], B: f8e5m2[N, K], SB: e8m0[N, K // 32]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared   a: f8e4m3[BM, BK], b: f8e5m2[BN, BK], sa: e8m0[BM, BK // 32], sb: e8m0[BN, BK // 32]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    sa = SA[bx*BM, k*BK // 32]
    b = B[by*BN, k*BK]
    sb = SB[by*BN, k*BK // 32]
    c += scaled(a, sa) @ scaled(b, sb).T
  }
  C[bx*BM, by*BN] = c
}
"""
OF_4_BITS = GEMM.replace("f8e4m3", "f4e2m1").replace("f8e5m2", "f4e1m2")
QUANTISED = """
kernel quantised[M=40, N=32, K=128](A: f16[M, K], SA: e8m0[M, K // 32], B: f8e4m3[N, K], SB: e8m0[N, K // 32]) -> C: f16[M, N] {
  grid bx = 1
  shared a: f16[M, K], q: f8e4m3[M, K], b: f8e4m3[N, K], sa: e8m0[M, K // 32], sb: e8m0[N, K // 32]
  a = A[0, 0]
  q = f8e4m3(f32(a) * 4)
  sa = SA[0, 0]
  b = B[0, 0]
  sb = SB[0, 0]
  C[0, 0] = exp(0.001 * (scaled(q, sa) @ scaled(b, sb).T))
}
"""


@lru_cache
def compiled(source: str, **sizes: int) -> Lowered:
    return lower(load_text(source).instantiate(sizes), "950")


@pytest.mark.few(3)
@pytest.mark.slow(but=2)
@pytest.mark.parametrize("source", [
    GEMM, OF_4_BITS, QUANTISED, GEMM.replace("K=320", "K=2048"), OF_4_BITS.replace("M=100", "M=1"),
    GEMM.replace("BM=64, BN=64", "BM=512, BN=512").replace("M=100", "M=600"),
], ids=["mxfp8", "mxfp4", "quantised", "deep", "row", "panels"])  # fmt: skip
def test_a_product_with_scales_computes_what_it_means(source: str) -> None:
    low = compiled(source)
    for drawn in drawn_sets(low.kernel, ("uniform", "wide"), seed=2):
        run = low.run(drawn.arrays)
        assert not run.findings
        assert all(c.good for c in compare(run.outputs, expected(low.kernel, drawn.arrays)))


@pytest.mark.slow
def test_the_emitted_text_names_the_operands_types_and_moves_scales_by_pairs() -> None:
    text = str(compiled(OF_4_BITS).source)
    assert "MmadMx" in text and "LocalTensor<fp4x2_e2m1_t> c_l0a" in text and "LocalTensor<fp4x2_e1m2_t> c_l0b" in text
    assert "GlobalTensor<uint16_t> SA_gm" in text and "Dn2NzParams" in text and "LoadData2DMxParams" in text


def test_its_program_reads_back() -> None:
    program = compiled(OF_4_BITS).program
    assert parse_program(str(program)) == program


def gemm_mx(dtype: str, chip: str = "950", scale: str = "float8_e8m0", transpose: bool = True, other: str = ""):
    @tile_eg.jit(out_idx=[-1], chip=chip)
    def build(M, N, K):
        @T.prim_func
        def main(
            A: T.Tensor((M, K), dtype), SA: T.Tensor((M, K // 32), scale), B: T.Tensor((N, K), other or dtype),
            SB: T.Tensor((N, K // 32), scale), C: T.Tensor((M, N), "float32"),
        ):  # fmt: skip
            with T.Kernel(1):
                a, sa = T.alloc_shared((M, K), dtype), T.alloc_shared((M, K // 32), scale)
                b, sb = T.alloc_shared((N, K), other or dtype), T.alloc_shared((N, K // 32), scale)
                c = T.alloc_fragment((M, N), "float32")
                T.copy(A, a)
                T.copy(SA, sa)
                T.copy(B, b)
                T.copy(SB, sb)
                T.gemm_mx(a, sa, b, sb, c, transpose_B=transpose, init=True)
                T.copy(c, C)

        return main

    return build


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float4_e2m1fn"])
def test_python_takes_arrays_of_ml_dtypes_and_adds_up_exact_products(name: str) -> None:
    random = np.random.default_rng(3)
    a, b = (random.uniform(-6, 6, (rows, 128)).astype(getattr(ml_dtypes, name)) for rows in (33, 20))
    sa, sb = (random.integers(120, 134, (rows, 4), dtype=np.uint8).view(E8M0) for rows in (33, 20))
    x, y = (v.astype(np.float64) * np.repeat(s.astype(np.float64), 32, axis=1) for v, s in ((a, sa), (b, sb)))
    c = gemm_mx(name)(33, 20, 128)(a, sa, b, sb)
    np.testing.assert_allclose(c, x @ y.T, rtol=1e-5, atol=1e-5 * np.abs(x @ y.T).max())


PYTHON = [
    ({"dtype": "float8_e4m3", "chip": "910B2"}, "910B2 has none"),
    ({"dtype": "float4_e2m1", "chip": "910B2"}, "910B2 has no such products"),
    ({"dtype": "float8_e4m3", "scale": "uint8"}, "the scales of 64 x 64 of f8e4m3 are 64 x 2 of e8m0"),
    ({"dtype": "float8_e4m3", "transpose": False}, r"the right one as \(N, K\)"),
    ({"dtype": "float16"}, "scales are of tiles of f8e4m3"),
    ({"dtype": "float8_e4m3", "other": "float4_e2m1"}, "multiplies floats of one width"),
]


@pytest.mark.parametrize(("options", "said"), PYTHON)
def test_what_the_cube_core_cannot_do_is_refused(options: dict, said: str) -> None:
    with pytest.raises(TileError, match=said):
        gemm_mx(**options)(64, 64, 64).planned()


TEXTS = [
    (GEMM.replace("scaled(b, sb).T", "b.T"), "both operands of a product have scales, or none"),
    (GEMM.replace("C[bx*BM, by*BN] = c", "C[bx*BM, by*BN] = scaled(a, sa)"), "stands for an operand of a product"),
    (GEMM.replace("K=320", "K=352"), "goes along K in steps of 64"),
    (GEMM.replace("BK=128", "BK=32"), "this tile has 32 columns"),
    (GEMM.replace("k*BK // 32]\n    b", "k*BK // 32 + 1]\n    b"), "two scales of a row are loaded together"),
    (GEMM.replace("sb = SB[by*BN, k*BK // 32]", "sb = 1"), "no numbers are computed of them"),
    (GEMM.replace("-> C: f32[M, N]", "-> C: e8m0[M, N]").replace("BN] = c", "BN] = sa"), "holds scales"),
    (OF_4_BITS.replace("= c\n}", "= c + rowsum(f32(a))[:, None]\n}"), "operands of products alone"),
]


@pytest.mark.parametrize(("source", "said"), TEXTS)
def test_a_mistake_is_told_at_its_line(source: str, said: str) -> None:
    with pytest.raises(TileError, match=said) as caught:
        lower(load_text(source).instantiate(), "950")
    assert "|" in str(caught.value)


def test_a_load_takes_its_bytes_and_those_of_its_scales() -> None:
    """ASC: the bytes / 256 and those of the scales / 32 cycles, one after the other."""
    from tile_eg.chips import load_chip
    from tile_eg.ops.types import E4M3, SCALED
    from tile_eg.timeline.instruction import Work, cycles

    chip = load_chip("950")
    plain, scaled = (cycles(chip, Work("l1_to_l0a", 128, 1, 256, t, t)) for t in (E4M3, SCALED[E4M3]))
    assert scaled - plain == 128 * 256 / 32 / 32


def test_floats_of_4_bits_are_multiplied_twice_as_fast_as_those_of_8() -> None:
    from tile_eg.chips import load_chip
    from tile_eg.ops.types import E2M1, E4M3, F32, SCALED
    from tile_eg.timeline.instruction import Work, cycles

    chip = load_chip("950")
    small, smallest = (cycles(chip, Work("mmad", 256, 256, 256, F32, SCALED[t])) for t in (E4M3, E2M1))
    assert smallest < 0.51 * small
