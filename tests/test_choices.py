"""Kernels that choose by comparisons of elements and of positions, all the way: the emitted text computes what they mean."""

from __future__ import annotations

import pytest

from tile_eg.frontend.text import load_text
from tile_eg.inputs import draw
from tile_eg.report.compare import compare
from tile_eg.search.compiler import expected, lower

CHOICES = """kernel choices[M=64, N=128, BM=32](X: f32[M, N], Z: f16[M, N], V: bf16[M]) -> (Y: f32[M, N], W: f16[M, N]) {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, N], y: f32[BM, N], z: f16[BM, N], w: f16[BM, N], v: bf16[BM]
  x = X[bx*BM, 0]  z = Z[bx*BM, 0]  v = V[bx*BM]
  y = select(x > 0.25, x * 2, -x)
  w = select(z <= x and z > -0.5 or not z < 1, z, 0)
  parallel (i, j) in (BM, N) {
    y[i, j] = select(bx*BM + i >= 2*j - 5 and v[i] != 0, y[i, j], -inf)
    w[i, j] = select(f32(v[i]) < z[i, j] or bx == 1, 1, w[i, j])
  }
  Y[bx*BM, 0] = y  W[bx*BM, 0] = w
}"""
ROPE = """kernel rope[M=70, H=32, BM=16](X: f16[M, 2*H], C: f32[M, H], S: f32[M, H]) -> Y: f16[M, 2*H] {
  grid bx = ceildiv(M, BM)
  shared x: f16[BM, 2*H], c: f32[BM, H], s: f32[BM, H]
  x = X[bx*BM, 0]  c = C[bx*BM, 0]  s = S[bx*BM, 0]
  parallel (i, j) in (BM, H) {
    Y[bx*BM + i, j] = x[i, j] * c[i, j] - x[i, j + H] * s[i, j]
    Y[bx*BM + i, j + H] = x[i, j + H] * c[i, j] + x[i, j] * s[i, j]
  }
}"""
CASES = [
    *((CHOICES, dict(zip("MN", shape, strict=True))) for shape in [(64, 128), (37, 50), (5, 1)]),
    *((ROPE, dict(zip("MH", shape, strict=True))) for shape in [(70, 32), (33, 17)]),
]


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("text", "sizes"), CASES, ids=lambda c: str(c)[:14])
def test_a_kernel_with_choices_computes_what_it_means(text: str, sizes: dict[str, int]) -> None:
    kernel = load_text(text).instantiate(sizes)
    inputs = draw([t for t in kernel.tensors if not t.output], "uniform", seed=1)
    got = lower(kernel).run(inputs).outputs
    assert [c for c in compare(got, expected(kernel, inputs)) if not c.good] == []


@pytest.mark.slow
def test_no_number_is_less_than_what_is_none() -> None:
    text = """kernel none[N=64](X: i32[16, N], W: f32[16, N]) -> Y: f32[16, N] {
      grid bx = 1
      shared x: i32[16, N], w: f32[16, N]
      x = X[0, 0]  w = W[0, 0]
      Y[0, 0] = select(f32(x) * 0.5 < (inf - inf), 0.0, w)
    }"""
    kernel = load_text(text).instantiate({})
    inputs = draw([t for t in kernel.tensors if not t.output], "uniform", seed=1)
    assert (lower(kernel).run(inputs)["Y"] == inputs["W"]).all()
