"""More handovers between the cores than there are counters: those that come in one order share theirs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.extract.checked import arrays_for
from tests.extract.kernels import kernel
from tile_eg.emit.sync.counters import CROSS_IDS, share_counters
from tile_eg.emit.sync.cross import CrossEdge
from tile_eg.emit.sync.trace import FlagsRunOut
from tile_eg.ir.program import AIC, AIV, CrossSet, walk
from tile_eg.search.compiler import Lowered, lower, meaning

STAGES = 6


def chain_of(stages: int) -> str:
    """Products of exponentials of products: each stage crosses there and back in each trip."""
    body = [f"p{i} = exp(s{i} * 0.01)\n    s{i + 1} = p{i} @ b" for i in range(stages)]
    tiles = ", ".join(f"p{i}: f16[M, 32]" for i in range(stages))
    sums = ", ".join(f"s{i}: f32[M, 32]" for i in range(stages + 1))
    lines = "\n    ".join(body)
    return f"""
kernel stages[M=32, K=32, S=64](A: f16[M, K], B: f16[S, K]) -> C: f32[M, 32] {{
  grid bx = 1
  shared a: f16[M, K], b: f16[32, K], {tiles}
  fragment {sums}, o: f32[M, 32] = 0
  a = A[0, 0]
  for j in pipelined(ceildiv(S, 32)) {{
    b = B[j*32, 0]
    s0 = a @ b.T
    {lines}
    o = o + s{stages}
  }}
  C[0, 0] = o
}}
"""


@cache
def compiled() -> Lowered:
    return lower(kernel(chain_of(STAGES)), "910B2")


@pytest.mark.slow
def test_handovers_share_counters_where_these_run_out() -> None:
    p = compiled().program
    sets = [(core, n.id, n.pipe) for core in (AIC, AIV) for n in walk(p.core(core)) if isinstance(n, CrossSet)]
    assert len(sets) > CROSS_IDS >= len({number for _, number, _ in sets})
    owners = {}
    for core, number, pipe in sets:
        assert owners.setdefault(number, (core, pipe)) == (core, pipe)  # sets of one pipe take effect in their order


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, 1, 2])
def test_what_shares_a_counter_is_right_in_any_order_of_pipes(order: int | None) -> None:
    k = kernel(chain_of(STAGES))
    arrays = arrays_for(k)
    run = compiled().run(arrays, order=order)
    assert not run.findings
    np.testing.assert_allclose(run.outputs["C"], meaning(k, arrays)["C"], rtol=4e-3)


def edges(count: int, pipe: str = "FIX") -> list[CrossEdge]:
    at = ("post", ())
    return [CrossEdge(f"b{n}", False, AIC, pipe, at, at) for n in range(count)]


def test_each_has_its_own_while_there_are_enough() -> None:
    assert share_counters(edges(CROSS_IDS), lambda: False) == list(range(CROSS_IDS))


def test_no_more_share_than_have_to() -> None:
    some = edges(CROSS_IDS + 2)
    assert len(set(share_counters(some, lambda: True))) == CROSS_IDS
    assert sum(e.counter is not None for e in some) <= 4


def test_what_would_be_out_of_order_shares_nothing() -> None:
    some = edges(CROSS_IDS + 1)
    with pytest.raises(FlagsRunOut, match="12 cross-core counters are needed, there are 11"):
        share_counters(some, lambda: False)
    assert all(e.counter is None for e in some)


def test_pipes_share_no_counter() -> None:
    some = [*edges(CROSS_IDS - 5), *edges(1, "M"), *edges(1, "MTE1"), *edges(1, "MTE2"), *edges(1, "MTE3")]
    some += [CrossEdge("v", False, AIV, p, ("post", ()), ("post", ())) for p in ("V", "MTE2")]
    numbers = share_counters(some, lambda: True)
    shared = {n: {(e.src, e.pipe) for e, m in zip(some, numbers, strict=True) if m == n} for n in numbers}
    assert all(len(pipes) == 1 for pipes in shared.values()) and len(shared) == CROSS_IDS
