"""Long chains of vector operations: each has two or three ways, and the solver proves the best of all without trying each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.extract.kernels import CHIP, graph_of, kernel, pricer
from tile_eg.egraph import saturate
from tile_eg.extract.exact import Exact
from tile_eg.extract.model import Model
from tile_eg.extract.solver import BOUNDED, PLAIN, Bounds, Found, Searches
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel

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


def test_a_search_that_ended_before_it_found_as_much_takes_nothing_away() -> None:
    first = Found([1, 0], False, 0.1, 100)
    assert first.then(Found([0, 1], False, 0.2, 120)) == Found([1, 0], False, pytest.approx(0.3), 100)
    assert first.then(Found(None, False, 0.2)).values == [1, 0]
    assert first.then(Found([0, 1], True, 0.2, 90)) == Found([0, 1], True, pytest.approx(0.3), 90)


@pytest.mark.slow
def test_the_same_choice_each_time() -> None:
    graph = graph_of(polynomial(14))
    one, other = (Exact().extract(graph, CHIP, pricer(graph), 1).best for _ in range(2))
    assert one.nodes == other.nodes


SLICES = """
kernel slices[M=4096, K=4096, N=6144](X: f16[M, K], W: f16[K, N]) -> (Q: f16[M, 4096], R: f16[M, 1024], S: f16[M, 1024]) {
  P = X @ W
  Q = P[:, :4096]
  R = P[:, 4096:5120]
  S = P[:, 5120:]
}
"""


TWO_LOOPS = """
kernel two[M=64, N=512](X: f32[M, N], Z: f32[M, N]) -> (Y: f32[M, N], W: f32[M, N]) {
  grid bx = ceildiv(M, 32)
  shared x: f32[32, 64], z: f32[32, 64]
  for k in pipelined(ceildiv(N, 64)) {
    x = X[bx*32, k*64]
    Y[bx*32, k*64] = exp(x)
  }
  for j in pipelined(ceildiv(N, 64)) {
    z = Z[bx*32, j*64]
    W[bx*32, j*64] = z * z
  }
}
"""


def model_of(kernel: Kernel) -> tuple[Model, Bounds]:
    graph = saturate(to_values(kernel), CHIP)
    model = Model(graph, CHIP, pricer(graph))
    Exact().aim(model)
    return model, Bounds(model.cp, model.parts())


@pytest.mark.slow
def test_loops_one_behind_the_other_are_proven_by_the_least_of_each() -> None:
    """Three products of one block. Without these bounds, not in twenty times as much work."""
    model, bounds = model_of(load_text(SLICES).instantiate().build({"BM": 64, "BK": 128, "BK_1": 256, "BK_2": 64}))
    assert Searches(PLAIN + BOUNDED, bounds).least(model.cp).proved
    assert not Searches(PLAIN).least(model.cp).proved


@pytest.mark.slow
def test_the_bounds_leave_the_best_choice() -> None:
    model, bounds = model_of(kernel(TWO_LOOPS))
    plain, bounded = (Searches(10.0).least(cp) for cp in (model.cp, bounds.of(model.cp)))
    assert min(bounds.least) > 0
    assert plain.proved and bounded.proved
    assert cost(model, plain.values) == cost(model, bounded.values)


def test_a_single_loop_has_no_bound_of_its_own() -> None:
    model, bounds = model_of(kernel(polynomial(2)))
    assert bounds.of(model.cp) is model.cp


def cost(model: Model, values: Sequence[int] | None) -> int:
    assert values
    objective = model.cp.proto.objective
    return sum(c * values[v] for v, c in zip(objective.vars, objective.coeffs, strict=True))
