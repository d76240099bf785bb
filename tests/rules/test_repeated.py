"""What an element loop does to one value a row, or a column, is done before that is repeated over the tile."""

from __future__ import annotations

import pytest

from tests.extract.checked import arrays_for
from tile_eg.frontend.text import load_text
from tile_eg.ir.index import const
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Instr, walk
from tile_eg.report.compare import compare
from tile_eg.search.compiler import expected, lower

TEXT = """
kernel decays[M=64, N=128](X: f32[M, N], V: f32[M], W: f32[N], s: f32) -> C: f32[M, N] {{
  grid bx = ceildiv(M, 64)
  shared x: f32[64, N], v: f32[64], u: f32[64], w: f32[N]
  x = X[bx*64, 0]
  v = V[bx*64]
  w = W[0]
  parallel i in 64 {{ u[i] = v[i] * 3 }}
  parallel (i, j) in (64, N) {{ x[i, j] = x[i, j] * {} }}
  C[bx*64, 0] = x
}}
"""
FACTORS = {
    "a number behind": "exp(v[i] * 0.5)", "a number before": "exp(2 - v[i])", "a number of the call behind": "exp(v[i] + s)",
    "a number of the call before": "exp(s - v[i])", "its place": "exp(i * v[i])", "a column and its place": "exp(w[j] * j)",
    "a column": "exp(w[j] * 0.5 + 1)", "one of them all": "exp(u[63] - u[i])",
}  # fmt: skip


def kernel(factor: str, rows: int = 64) -> Kernel:
    return load_text(TEXT.format(FACTORS[factor])).instantiate({"M": rows, "s": 0.75})


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("factor", FACTORS)
def test_it_is_done_to_a_vector(factor: str) -> None:
    (exp,) = [n for n in walk(lower(kernel(factor)).program.vector) if isinstance(n, Instr) and n.op == "vexp"]
    assert exp.rows == const(1)


@pytest.mark.slow
@pytest.mark.parametrize("factor", ["a number behind", "a column and its place", "one of them all"])
def test_the_numbers_are_those_of_the_source_at_tails_too(factor: str) -> None:
    k = kernel(factor, 100)
    arrays = arrays_for(k)
    run = lower(k).run(arrays)
    assert not run.findings
    assert all(c.good for c in compare(run.outputs, expected(k, arrays)))
