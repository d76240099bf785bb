"""Element loops that read rows of no whole blocks of 32 bytes in another order than they lie in."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

LOOP = """kernel k[M=13, N=9, B=8](X: {dtype}[M, 2*N + 1]) -> Y: {dtype}[M, N] {{
  grid b = ceildiv(M, B)
  shared x: {dtype}[B, 2*N + 1]
  fragment y: {dtype}[B, N]
  x = X[b*B, 0]
  parallel (i, j) in (B, N) {{ y[i, j] = {value} }}
  Y[b*B, 0] = y
}}"""
FIRST = """kernel k[M=3, N=45](X: f32[M, N]) -> Y: f32[M, 32] {
  grid b = M
  shared x: f32[1, N]
  x = X[b, 0]
  Y[b, 0] = topk(x, 16)
}"""
J = np.arange(9)
CASES = {
    "x[i, 2*j]": lambda x: x[:, 2 * J], "x[i, 2*j] - x[i, 2*j + 1]": lambda x: x[:, 2 * J] - x[:, 2 * J + 1],
    "x[i, j // 4]": lambda x: x[:, J // 4], "x[i, 8 - j]": lambda x: x[:, 8 - J],
}  # fmt: skip


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("value", CASES)
@pytest.mark.parametrize(("dtype", "name"), [("f32", "float32"), ("f16", "float16")])
def test_elements_are_gathered_from_rows_that_have_gaps(value: str, dtype: str, name: str) -> None:
    x = np.random.default_rng(0).integers(-99, 99, (13, 19)).astype(name)
    ran = lower(load_text(LOOP.format(dtype=dtype, value=value), "k.tile").instantiate()).run({"X": x})
    assert not ran.findings
    np.testing.assert_array_equal(ran.outputs["Y"], CASES[value](x))


@pytest.mark.slow
def test_one_row_has_no_gaps() -> None:
    x = np.random.default_rng(0).permutation(135).reshape(3, 45).astype(np.float32)
    ran = lower(load_text(FIRST, "k.tile").instantiate()).run({"X": x})
    np.testing.assert_array_equal(ran.outputs["Y"][:, ::2], -np.sort(-x, 1)[:, :16])
