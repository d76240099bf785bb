"""Rows that end sooner in some trips: what is behind them is made neutral, in their place, in the trips in which they do."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.rules.texts import texts
from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.ir.program import Instr, walk
from tile_eg.laboratory.audit import audit_kernel
from tile_eg.report.compare import compare
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, expected, lower

SUMS = {
    "rows that exist": texts()["running sums of tiles of columns that end"],
    "rows that end": texts()["running sums of tiles that end"],
}
RULES = ("whole-rows", "whole-tiles", "rows-of-put")


@cache
def found(name: str, *without: str) -> Lowered:
    return lower(kernel(SUMS[name]), "910B2", search=search_options(without=without))


def ops(low: Lowered) -> list[str]:
    return [n.op for n in walk(low.program.vector) if isinstance(n, Instr)]


@pytest.mark.parametrize("name", SUMS)
def test_all_terms_agree(name: str) -> None:
    assert audit_kernel(kernel(SUMS[name])).found == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMS)
def test_the_numbers_are_the_same(name: str) -> None:
    low, k = found(name), kernel(SUMS[name])
    assert "vbeyond" in ops(low)
    arrays = arrays_for(k)
    for order in (None, 1):
        run = low.ranked[0].planned.run(arrays, order=order)
        assert not run.findings
        assert all(c.good for c in compare(run.outputs, expected(k, arrays)))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_it_takes_longer(rule: str) -> None:
    name = "rows that exist" if rule == "whole-rows" else "rows that end"
    assert found(name).ranked[0].microseconds < found(name, rule).ranked[0].microseconds


FAR_APART = """
kernel far_apart[M=6, N=6000, BM=4, BN=4096](X: bf16[M, N]) -> L: f32[M] {
  grid bx = ceildiv(M, BM)
  shared   x: bf16[BM, BN]
  fragment f: f32[BM, BN], m: f32[BM] = -inf, l: f32[BM] = 0
  for k in pipelined(ceildiv(N, BN)) {
    x = X[bx*BM, k*BN]
    f = x
    m = max(m, rowmax(f))
    l = l + rowsum(exp(f))
  }
  L[bx*BM] = m + log(l)
}
"""


@pytest.mark.slow
def test_rows_further_apart_than_a_repeat_reaches_are_done_one_by_one() -> None:
    low, k = lower(kernel(FAR_APART), "910B2"), kernel(FAR_APART)
    assert "vbeyond" in ops(low) and max(b.pitch for b in low.program.buffers) > 255 * 8
    arrays = arrays_for(k)
    run = low.ranked[0].planned.run(arrays)
    assert not run.findings and all(c.good for c in compare(run.outputs, expected(k, arrays)))
