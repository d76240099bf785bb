"""Rows that end sooner in some trips: what is behind them is made neutral, in their place, in the trips in which they do."""

from __future__ import annotations

from functools import cache

import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.ir.program import Instr, walk
from tile_eg.laboratory.audit import audit_kernel
from tile_eg.report.compare import compare
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, expected, lower

SOFTMAX = """
kernel sums[M=72, N=200, BM=64, BN=64](X: f32[M, N]) -> (C: f32[1, M], E: f32[M, N]) {
  grid bx = ceildiv(M, BM)
  shared   x: f32[BM, BN]
  fragment m: f32[BM] = -inf, l: f32[BM] = 0, n: f32[BM]
  for j in pipelined(ceildiv(N, BN)) {
    x = X[bx*BM, j*BN] * 2
    n = max(m, rowmax(x))
    x = exp(x - n[:, None])
    l = l * exp(m - n) + rowsum(x)
    m = n
    E[bx*BM, j*BN] = x
  }
  C[0, bx*BM] = l
}
"""
RULES = ("whole-rows", "whole-tiles", "rows-of-put")
SIZES = {"rows that exist": {"M": 128}, "rows that end": {}}


@cache
def found(*without: str, **sizes: int) -> Lowered:
    return lower(kernel(SOFTMAX, **sizes), "910B2", search=search_options(without=without))


def ops(low: Lowered) -> list[str]:
    return [n.op for n in walk(low.program.vector) if isinstance(n, Instr)]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_all_terms_agree(sizes: dict[str, int]) -> None:
    assert audit_kernel(kernel(SOFTMAX, **sizes)).found == []


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_the_numbers_are_the_same(sizes: dict[str, int]) -> None:
    low, k = found(**sizes), kernel(SOFTMAX, **sizes)
    assert "vbeyond" in ops(low)
    arrays = arrays_for(k)
    for order in (None, 1):
        run = low.ranked[0].planned.run(arrays, order=order)
        assert not run.findings
        assert all(c.good for c in compare(run.outputs, expected(k, arrays)))


@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_it_takes_longer(rule: str) -> None:
    sizes = SIZES["rows that exist" if rule == "whole-rows" else "rows that end"]
    assert found(**sizes).ranked[0].microseconds < found(rule, **sizes).ranked[0].microseconds
