"""Long chains of vector operations: each has two or three ways, and the solver proves the best of all without trying each."""

from __future__ import annotations

import pytest

from tests.extract.kernels import CHIP, graph_of, pricer
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model
from tile_eg.extract.solver import PLAIN, Searches

LOOP = """
kernel horner[M=64, N=512, BN=64](X: f16[M, N], Z: f16[M, N]) -> Y: f16[M, N] {{
  grid bx = ceildiv(M, 32)
  shared   x: f16[32, BN], z: f16[32, BN]
  fragment f: f32[32, BN], g: f32[32, BN]
  for k in pipelined(ceildiv(N, BN)) {{
    x = X[bx*32, k*BN]
    z = Z[bx*32, k*BN]
    f = x
    g = z
    {words}
    Y[bx*32, k*BN] = f
  }}
}}
"""


def polynomial(degree: int) -> str:
    return LOOP.format(words="\n    ".join(f"f = f * g + {0.25 + n / 8}" for n in range(degree)))


@pytest.mark.slow
def test_a_chain_of_14_is_proven_with_little_work() -> None:
    """Without a relaxation, not in a hundred times as much."""
    graph, exact = graph_of(polynomial(14)), Exact()
    found = exact.extract(graph, CHIP, pricer(graph), 3)
    assert exact.spent < 1.0
    assert not found.gave_up
    assert len(found.schedules) == 3


@pytest.mark.slow
def test_a_search_that_needed_a_relaxation_begins_with_it_the_next_time() -> None:
    graph = graph_of(polynomial(14))
    model = Model(graph, CHIP, pricer(graph))
    Exact().aim(model)
    searches = Searches(10.0)
    first, second = searches.least(model.cp), searches.least(model.cp)
    assert first.proved and second.proved
    assert second.work < PLAIN < first.work


@pytest.mark.slow
def test_no_more_schedules_are_asked_for_when_one_was_not_proven() -> None:
    graph, exact = graph_of(polynomial(14)), Exact(work=PLAIN)
    found = exact.extract(graph, CHIP, pricer(graph), 3)
    assert found.gave_up
    assert (found.solves, len(found.schedules)) == (1, 1)


@pytest.mark.slow
def test_the_same_choice_each_time() -> None:
    graph = graph_of(polynomial(14))
    one, other = (Exact().extract(graph, CHIP, pricer(graph), 1).best for _ in range(2))
    assert one.nodes == other.nodes
