"""Buffers and element loops of three dimensions: the same numbers as the sequential meaning, or a clear refusal."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.checks import check
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.ssa.planes import without_planes
from tile_eg.frontend.text import load_text
from tile_eg.ir import kernel as kn
from tile_eg.ir.reference import run_kernel, run_values

KERNEL = """kernel k[H=4, M=20, N=16, B=2](X: f32[H, M, N], W: f32[H, N], G: f32[M, N]) -> (Y: f32[H, M, N], S: f32[H, M]) {{
  grid (bh, bm) = (ceildiv(H, B), ceildiv(M, 8))
  shared x: f32[B, 8, N], w: f32[B, N], g: f32[8, N]
  fragment y: f32[B, 8, N], s: f32[B, 8]
  x = X[bh*B, bm*8, 0]
  w = W[bh*B, 0]
  g = G[bm*8, 0]
  y = x
  s = 1
  {body}
  Y[bh*B, bm*8, 0] = y
  S[bh*B, bm*8] = s
}}"""

BODIES = [
    "parallel (h, i, j) in (B, 8, N) { y[h, i, j] = x[h, i, j] * 2 + 1 }",
    "parallel (h, i, j) in (B, 8, N) { y[h, i, j] = x[h, i, j] * w[h, j] + g[i, j] }",
    "for h in serial(B) { for i in serial(8) { s[h, i] = sum(x[h, i, :]) } }",
    "for h in serial(B) { parallel (i, j) in (8, N) { y[h, i, j] = exp(x[h, i, j]) } }",
    "for h in serial(B) { if h == 0 { parallel (i, j) in (8, N) { y[h, i, j] = 3 * x[h, i, j] } } }",
    "for h in serial(B) { if bh*B + h < 3 { parallel (i, j) in (8, N) { y[h, i, j] = 3 * x[h, i, j] } } }",
    "for h in serial(B) { if bh*B + h < 3 { y[h, :, :] = X[bh*B + h, bm*8, 0] } }",
    "parallel (h, i, j) in (B, 8, N) { y[h, i, j] = select(x[h, i, j] > 0, x[h, i, j], w[h, j]) }",
    "parallel (h, i, j) in (B, 8, N) { y[h, i, j] = select(i <= j, x[h, i, j], 0) }",
    "parallel (h, i, j) in (B, 8, N) { y[h, i, j] = select(h == 0, x[h, i, j], 0) }",
    "parallel (h, i, j) in (B, 8, N) { y[h, i, j] = x[h, i, j] * (2*h + j) + bh }",
    "y = exp(x) * 0.5",
    "y = y + x",
    "s = s * 2 + 1",
    "parallel (i, j) in (8, N) { y[0, i, j] = x[1, i, j] }",
]


def kernel_of(body: str, **sizes: int) -> kn.Kernel:
    return load_text(KERNEL.format(body=body)).instantiate(sizes)


def inputs_of(kernel: kn.Kernel) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {t.name: rng.uniform(-1, 1, t.shape).astype(np.float32) for t in kernel.tensors if not t.output}


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("body", BODIES)
def test_planes_compute_what_the_kernel_says(body: str) -> None:
    kernel = kernel_of(body)
    check(kernel)
    given = inputs_of(kernel)
    expected, got = run_kernel(kernel, given), run_values(to_values(kernel), given)
    for name, array in expected.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-6)


FOUR = """kernel k[N=24](X: f32[4, 3, 8, N], W: f32[4, 3]) -> (Y: f32[4, 3, 8, N], S: f32[4, 8]) {{
  grid b = 2
  shared x: f32[2, 3, 8, N], y: f32[2, 3, 8, N] = 0
  fragment s: f32[2, 8] = 0
  x = X[b*2, 0, 0, 0]
  {body}
  Y[b*2, 0, 0, 0] = y
  S[b*2, 0] = s
}}"""

@pytest.mark.parametrize("reduced", ["s0 = colmax(s)", "s0 = colmax(s * 2)"])
def test_rows_that_are_reduced_together_stay_a_tile(reduced: str) -> None:
    """The weights of splits: one row goes with a plane, and all rows are reduced."""
    scaled = "for h in serial(B) { parallel (i, j) in (8, N) { y[h, i, j] = x[h, i, j] * s[h, i] / s0[i] } }"
    body = f"parallel (h, i) in (B, 8) {{ s[h, i] = select(h == 0, i + 1, 3) }}\n  {reduced}\n  {scaled}"
    kernel = load_text(KERNEL.format(body=f"fragment s0: f32[8]\n  {body}")).instantiate({})
    check(kernel)
    given = inputs_of(kernel)
    expected, got = run_kernel(kernel, given), run_values(to_values(kernel), given)
    np.testing.assert_allclose(got["Y"], expected["Y"], rtol=1e-5)


OF_FOUR = [
    "parallel (g, h, i, j) in (2, 3, 8, N) { y[g, h, i, j] = select(i <= j, x[g, h, i, j] * (h + 2), g) }",
    "y = exp(x) * 0.5",
    "for g in serial(2) { for h in serial(3) { s[g, :] = s[g, :] + rowsum(x[g, h, :, :]) } }",
    "parallel (h, i, j) in (3, 8, N) { y[1, h, i, j] = x[0, h, i, j] }",
]


@pytest.mark.parametrize("body", OF_FOUR)
def test_four_dimensions_are_planes_of_planes(body: str) -> None:
    kernel = load_text(FOUR.format(body=body)).instantiate({})
    check(kernel)
    given = inputs_of(kernel)
    expected, got = run_kernel(kernel, given), run_values(to_values(kernel), given)
    for name, array in expected.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-6)


def test_a_kernel_without_a_third_dimension_stays_as_it_is() -> None:
    kernel = load_text("kernel k(A: f32[8, 8]) -> B: f32[8, 8] { grid b = 1  B[0, 0] = A[0:8, 0:8] }").instantiate({})
    assert without_planes(kernel) is kernel


def test_no_buffer_of_three_dimensions_is_left() -> None:
    flat = without_planes(kernel_of(BODIES[1]))
    assert {len(s.shape) for s in flat.body if isinstance(s, kn.Alloc)} == {1, 2}


def test_a_plane_takes_no_name_that_another_buffer_has() -> None:
    source = KERNEL.format(body="fragment y_0: f32[8, N] = 7\n  y = x\n  parallel (i, j) in (8, N) { y[0, i, j] = y_0[i, j] }")
    names = [s.name for s in without_planes(load_text(source).instantiate({})).body if isinstance(s, kn.Alloc)]
    assert len(names) == len(set(names))


REFUSED = [
    (BODIES[0], {"H": 3}, "a window of `X` lies outside: bh*2 + 1 takes the value 3", "planes are not cut"),
    (BODIES[0], {"H": 32, "B": 32}, "32 planes of a third dimension are more than the 16", "let the grid or a loop"),
    ("parallel (h, i, j) in (B, 8, N) { y[h, i, j] = x[h, j, i] }", {}, "this part of `x` lies outside", ""),
    ("for k in pipelined(4) { y = y + x[k % 2, 0:8, 0:N] }", {}, "the shapes of", ""),
    ("for k in pipelined(4) { g = x[k % 2, 0:8, 0:N] }", {}, "which plane of `x` this is goes with k % 2", "at a time"),
    ("s = rowsum(x)", {}, "f32[2, 8, 16] has three dimensions: only rows and columns are reduced", "plane by plane"),
    ("y = x[0:1, 0:8, 0:N] + x", {}, "the shapes of", ""),
]


@pytest.mark.parametrize("body, sizes, message, help", REFUSED)
def test_what_planes_cannot_say_is_refused(body: str, sizes: dict[str, int], message: str, help: str) -> None:
    kernel = kernel_of(body, **sizes)
    with pytest.raises(TileError) as e:
        check(kernel)
        to_values(kernel)
    assert message in e.value.message and help in e.value.help
